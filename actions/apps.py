"""App configuration of the action log: after each migrate, the database is made to refuse changes of it."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _


class ActionsConfig(AppConfig):
    """At the bottom: everybody writes to it, and it asks nobody."""

    name = "actions"
    verbose_name = _("Action log")

    def ready(self) -> None:
        """Guard the table whenever its migrations have run."""
        from actions.guard import guard_after_migrate

        post_migrate.connect(guard_after_migrate, sender=self, dispatch_uid="actions.guard")
