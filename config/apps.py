"""App configuration of the project package: registers the system checks."""

from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig


class ConfigConfig(AppConfig):
    """Top layer: may import every app."""

    name = "config"
    label = "config"

    def ready(self) -> None:
        """Register the checks."""
        from config import checks  # noqa: F401


class DeskConfig(AdminConfig):
    """Django's admin with the desk's site in its place."""

    default_site = "rest.desk.DeskSite"

    def ready(self) -> None:
        """Let the apps register their pages, and then replace those of libraries."""
        super().ready()
        from config.library_pages import put_on_the_desk

        put_on_the_desk()
