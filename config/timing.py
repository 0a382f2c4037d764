"""Timing of sampled purchases, in front of everything else that answers; see ``seckill.stage_times``."""

from random import random
from typing import TYPE_CHECKING

from django.conf import settings
from django.urls import reverse

from metrics.stages import watched
from seckill.stage_times import stage_sums

if TYPE_CHECKING:
    from a2wsgi.asgi_typing import ASGIApp, Receive, Scope, Send


def with_stage_times(application: "ASGIApp") -> "ASGIApp":
    """Return the application with one purchase of so many timed, or as it is where the settings want none."""
    if not settings.STAGE_SAMPLE_ONE_IN:
        return application
    share, purchases = 1 / settings.STAGE_SAMPLE_ONE_IN, reverse("purchase")

    async def timed(scope: "Scope", receive: "Receive", send: "Send") -> None:
        # First what nearly always ends it.
        if random() >= share or scope["type"] != "http" or scope["path"] != purchases or scope["method"] != "POST":  # noqa: S311
            return await application(scope, receive, send)
        with watched() as watch:
            await application(scope, receive, send)
        stage_sums.note(watch.seconds)
        return None

    return timed
