"""Timing of sampled purchases, in front of everything else that answers; see ``seckill.stage_times``."""

from collections.abc import Iterable
from random import random
from typing import TYPE_CHECKING

from django.conf import settings
from django.urls import reverse

from metrics.stages import watched
from seckill.stage_times import stage_sums

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


def with_stage_times(application: "WSGIApplication") -> "WSGIApplication":
    """Return the application with one purchase of so many timed, or as it is where the settings want none."""
    if not settings.STAGE_SAMPLE_ONE_IN:
        return application
    share, purchases = 1 / settings.STAGE_SAMPLE_ONE_IN, reverse("purchase")

    def timed(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        # First what nearly always ends it.
        if random() >= share or environ["PATH_INFO"] != purchases or environ["REQUEST_METHOD"] != "POST":  # noqa: S311
            return application(environ, start_response)
        with watched() as watch:
            answer = application(environ, start_response)
        stage_sums.note(watch.seconds)
        return answer

    return timed
