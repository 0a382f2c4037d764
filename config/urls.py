"""URLs of the project."""

from django.contrib import admin
from django.urls import include, path

from config.health import health

urlpatterns = [
    path("admin/", admin.site.urls),
    path("api/v1/", include("seckill.urls")),
    path("healthz", health, name="health"),
]
