"""URLs that belong to no app, below ``/api/v1/``."""

from django.urls import path

from rest import views

urlpatterns = [
    path("me/", views.MeView.as_view(), name="me"),
    path("time/", views.TimeView.as_view(), name="time"),
]
