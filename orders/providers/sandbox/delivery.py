"""The sandbox's notifications, sent by HTTP until the shop answers 200."""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from http import HTTPStatus

import requests
from django.conf import settings

from orders.models import SandboxNotice
from orders.providers.sandbox.signing import HEADER, sign

logger = logging.getLogger(__name__)

BATCH_SIZE = 100
TRIES_MAX = 8
RETRY_AFTER = timedelta(seconds=2)
TIMEOUT_SECONDS = 5


def deliver_due(*, clock: Callable[[], datetime]) -> int:
    """Send what is due; return how many the shop has taken. The others come again, later each time."""
    due = list(SandboxNotice.objects.filter(due_at__lte=clock()).order_by("due_at", "pk")[:BATCH_SIZE])
    return sum(_deliver(notice=notice, now=clock()) for notice in due)


def _deliver(*, notice: SandboxNotice, now: datetime) -> bool:
    again_at = now + RETRY_AFTER * 2**notice.tries if notice.tries + 1 < TRIES_MAX else None
    mine = SandboxNotice.objects.filter(pk=notice.pk, due_at=notice.due_at, tries=notice.tries)
    if mine.update(due_at=again_at, tries=notice.tries + 1) != 1 or not _post(body=notice.body.encode(), now=now):
        return False
    SandboxNotice.objects.filter(pk=notice.pk).update(due_at=None)
    return True


def _post(*, body: bytes, now: datetime) -> bool:
    headers = {HEADER: sign(body=body, at=int(now.timestamp())), "Content-Type": "application/json"}
    try:
        response = requests.post(
            settings.SANDBOX_NOTIFY_URL, data=body, headers=headers, timeout=TIMEOUT_SECONDS, allow_redirects=False
        )
    except requests.RequestException as error:
        logger.warning("the shop does not take the sandbox's notification: %s", error)
        return False
    return response.status_code == HTTPStatus.OK
