"""How the sandbox signs its notifications: HMAC-SHA256 over the instant and the body."""

import hashlib
import hmac

from django.conf import settings
from django.utils.crypto import salted_hmac

HEADER = "Sandbox-Signature"
# A notification that is repeated is signed anew, so one with an older signature is somebody's replay.
AGE_SECONDS_MAX = 300


def sign(*, body: bytes, at: int) -> str:
    """Return the header for a body sent at a Unix time."""
    return f"t={at},v1={_digest(body=body, at=at)}"


def is_genuine(*, body: bytes, header: str, now: int) -> bool:
    """Tell whether a body was signed with the shared secret, not long ago and not in the future."""
    parts = dict(part.partition("=")[::2] for part in header.split(","))
    at = parts.get("t", "")
    if not (at.isascii() and at.isdigit() and len(at) <= 12) or abs(now - int(at)) > AGE_SECONDS_MAX:
        return False
    return hmac.compare_digest(parts.get("v1", "").encode(), _digest(body=body, at=int(at)).encode())


def _digest(*, body: bytes, at: int) -> str:
    secret = settings.SANDBOX_SECRET.encode() or salted_hmac("orders.sandbox", "notifications").digest()
    return hmac.new(secret, f"{at}.".encode() + body, hashlib.sha256).hexdigest()
