"""Channels: the ways an alert leaves the shop. Functions named in settings, mail to the admins, a signed webhook.

Each call sends once or raises; the outbox repeats. So a receiver may hear the same message twice
and tells by its id.
"""

import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import requests
from django.conf import settings
from django.core.mail import mail_admins
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _

from seckill.advice import advice_for
from seckill.alert_tables import Alert

CLOSED = Alert.Event.CLOSED
MAIL = "mail"
WEBHOOK = "webhook"
HOOK_PREFIX = "hook:"

CONNECT_TIMEOUT_SECONDS = 2
READ_TIMEOUT_SECONDS = 5
SIGNATURE_HEADER = "X-Seckill-Signature"


@dataclass(frozen=True, kw_only=True)
class Message:
    """What is told of an incident. ``delivery_id`` stays the same however often it is sent."""

    delivery_id: int
    incident_id: int
    event: str
    kind: str
    severity: str
    bucket: str
    sale: str
    detail: str
    count: int
    units: int
    happened_at: datetime

    @property
    def subject(self) -> str:
        """One line that says it all."""
        return _("%(severity)s: %(kind)s %(event)s in %(sale)s (bucket %(bucket)s)") % {
            **vars(self),
            "event": self.event.lower(),
        }

    @property
    def text(self) -> str:
        """The whole of it, for a person."""
        lines = [
            self.subject,
            "",
            _("What was found: %s") % self.detail,
            _("Seen %(count)d times, %(units)d units concerned; %(at)s") % {**vars(self), "at": self._at},
        ]
        if self.event != CLOSED:
            advice = advice_for(self.kind)
            lines += ["", _("What the system does: %s") % advice.did, _("What you can do: %s") % advice.can]
        return "\n".join(lines) + "\n"

    @property
    def as_json(self) -> Mapping[str, Any]:
        """The whole of it, for a program."""
        return {**vars(self), "happened_at": self._at, "text": self.text}

    @property
    def _at(self) -> str:
        return self.happened_at.isoformat(timespec="seconds")


def configured() -> list[str]:
    """Return the channels that the settings ask for, each hook a channel of its own."""
    found = [f"{HOOK_PREFIX}{path}" for path in settings.ALERT_HOOKS]
    if settings.ADMINS:
        found.append(MAIL)
    if settings.ALERT_WEBHOOK_URL:
        found.append(WEBHOOK)
    return found


def send(*, channel: str, message: Message) -> None:
    """Send a message through a channel, once. Raises whatever goes wrong; then it may have arrived or not."""
    if channel == MAIL:
        mail_admins(message.subject, message.text)
    elif channel == WEBHOOK:
        _post(message)
    else:
        import_string(channel.removeprefix(HOOK_PREFIX))(message)


def sign(*, body: bytes, timestamp: int, secret: str) -> str:
    """Return the signature header: the time, so that nobody replays it later, and an HMAC over time and body."""
    digest = hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={timestamp},v1={digest}"


def _post(message: Message) -> None:
    body = json.dumps(message.as_json, sort_keys=True).encode()
    headers = {
        "Content-Type": "application/json",
        "Idempotency-Key": str(message.delivery_id),
        SIGNATURE_HEADER: sign(body=body, timestamp=int(time.time()), secret=settings.ALERT_WEBHOOK_SECRET),
    }
    # Unread and without redirects: only the status counts, and a signed body goes nowhere else.
    with requests.post(
        settings.ALERT_WEBHOOK_URL,
        data=body,
        headers=headers,
        timeout=(CONNECT_TIMEOUT_SECONDS, READ_TIMEOUT_SECONDS),
        allow_redirects=False,
        stream=True,
    ) as response:
        if not response.ok or response.is_redirect:
            raise requests.HTTPError(f"the webhook answered {response.status_code}", response=response)
