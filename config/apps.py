"""App configuration of the project package: registers the system checks."""

from django.apps import AppConfig


class ConfigConfig(AppConfig):
    """Top layer: may import every app."""

    name = "config"
    label = "config"

    def ready(self) -> None:
        """Register the checks."""
        from config import checks  # noqa: F401
