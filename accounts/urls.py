"""URLs of the accounts below ``/api/v1/``."""

from django.urls import path

from accounts import api

urlpatterns = [
    path("accounts/", api.RegistrationView.as_view(), name="registration"),
    path("tokens/", api.TokensView.as_view(), name="tokens"),
    path("tokens/refresh/", api.TokenRenewalView.as_view(), name="token-renewal"),
    path("tokens/revoke/", api.TokenRevocationView.as_view(), name="token-revocation"),
    path("tokens/external/", api.ExternalTokensView.as_view(), name="external-tokens"),
    path("password-resets/", api.PasswordResetView.as_view(), name="api-password-reset"),
]
