"""URLs of the project."""

from django.conf import settings
from django.contrib import admin
from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularRedocView, SpectacularSwaggerSplitView

from config.health import health

urlpatterns = [
    path("admin/", admin.site.urls),
    path("api/v1/", include("rest.urls")),
    path("accounts/", include("accounts.pages_urls")),
    path("api/v1/", include("accounts.urls")),
    path("api/v1/", include("inventory.urls")),
    path("api/v1/", include("seckill.urls")),
    path("api/v1/", include("orders.urls")),
    path("api/v1/schema/", SpectacularAPIView.as_view(), name="schema"),
    path("api/v1/docs/", SpectacularSwaggerSplitView.as_view(url_name="schema"), name="swagger-ui"),
    path("api/v1/redoc/", SpectacularRedocView.as_view(url_name="schema"), name="redoc"),
    path("healthz", health, name="health"),
]

if settings.SANDBOX:
    urlpatterns.append(path("sandbox/", include("orders.providers.sandbox.urls")))
