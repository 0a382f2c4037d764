"""URLs of the pages, below ``/accounts/``; names as Django's own views expect them."""

from django.contrib.auth import views
from django.urls import path

from accounts import pages
from accounts.pages import counted

urlpatterns = [
    path("login/", counted("login")(pages.LoginPage.as_view()), name="login"),
    path("logout/", views.LogoutView.as_view(), name="logout"),
    path("register/", counted("register")(pages.RegistrationPage.as_view()), name="register"),
    path("password-reset/", counted("password_reset")(pages.PasswordResetPage.as_view()), name="password_reset"),
    path("password-reset/sent/", views.PasswordResetDoneView.as_view(), name="password_reset_done"),
    path("password-reset/<uidb64>/<token>/", views.PasswordResetConfirmView.as_view(), name="password_reset_confirm"),
    path("password-reset/done/", views.PasswordResetCompleteView.as_view(), name="password_reset_complete"),
]
