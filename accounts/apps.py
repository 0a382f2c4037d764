"""App configuration of the accounts."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class AccountsConfig(AppConfig):
    """Below the shop's apps: they ask it, it asks none of them."""

    name = "accounts"
    verbose_name = _("Accounts")
