"""The project: settings, URLs, error table, start-up checks and the Celery app."""

from config.celery import app as celery_app

__all__ = ["celery_app"]
