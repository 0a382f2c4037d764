"""App configuration of the accounts."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _


class AccountsConfig(AppConfig):
    """Below the shop's apps: they ask it, it asks none of them."""

    name = "accounts"
    verbose_name = _("Accounts")

    def ready(self) -> None:
        """Set what the roles may do whenever migrations have run."""
        from accounts.roles import set_roles

        post_migrate.connect(set_roles, sender=self, dispatch_uid="accounts.roles")
