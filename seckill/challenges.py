"""A step before the ticket that costs a bot CPU time: a proof of work (ALTCHA's protocol, version 1).

Find the number n, at most ``maxNumber``, for which SHA-256 of salt and n in decimal is the challenge. Whoever
cannot compute asks for a waiting pass instead, which is good after a while. Both are signed for one buyer and
one item, and each opens one ticket.
"""

import binascii
import json
from datetime import datetime, timedelta
from enum import StrEnum

from altcha.v1 import ChallengeOptions, Payload, create_challenge, verify_solution
from django.core.cache import cache
from django.core.signing import BadSignature, TimestampSigner
from django.utils.crypto import salted_hmac

from seckill.conf import LIMITS
from seckill.errors import ChallengeFailed, ChallengeRequired, ChallengeTooEarly

PROOF_LENGTH_MAX = 1_000
SALT = "seckill.challenge"


class ChallengeKind(StrEnum):
    """How a buyer shows patience: with his processor, or with his time."""

    WORK = "work"
    WAIT = "wait"


def work_for(*, item_id: int, buyer_id: int, now: datetime) -> dict[str, str | int]:
    """Return a challenge in ALTCHA's form for a buyer and an item."""
    options = ChallengeOptions(
        hmac_key=_key(),
        max_number=LIMITS.challenge_number_max,
        expires=now + timedelta(seconds=LIMITS.challenge_lifetime_seconds),
        params={"for": _subject(item_id=item_id, buyer_id=buyer_id)},
    )
    challenge: dict[str, str | int] = create_challenge(options).to_dict()
    return challenge


def waiting_pass_for(*, item_id: int, buyer_id: int) -> str:
    """Return a pass that opens a ticket after ``LIMITS.challenge_wait_seconds``."""
    return _passes().sign(_subject(item_id=item_id, buyer_id=buyer_id))


def require_proof(*, proof: str, item_id: int, buyer_id: int) -> None:
    """Check a solved challenge or a waiting pass, and void it.

    Raises ``ChallengeRequired``, ``ChallengeFailed``, ``ChallengeTooEarly``.
    """
    if not proof:
        raise ChallengeRequired
    subject = _subject(item_id=item_id, buyer_id=buyer_id)
    if proof.startswith(f"{subject}:"):
        _require_waited(proof=proof)
    else:
        _require_solved(proof=proof, subject=subject)
    if not cache.add(f"challenge:{_fingerprint(proof)}", 1, timeout=LIMITS.challenge_lifetime_seconds):
        raise ChallengeFailed


def _require_solved(*, proof: str, subject: str) -> None:
    try:
        payload = Payload.from_base64(proof)
        _, _, parameters = payload.parse_salt()
        is_solved, _ = verify_solution(payload, _key(), check_expires=True)
    except (ValueError, KeyError, TypeError, AttributeError, binascii.Error, json.JSONDecodeError) as error:
        raise ChallengeFailed from error
    if not is_solved or parameters.get("for") != [subject]:
        raise ChallengeFailed


def _require_waited(*, proof: str) -> None:
    try:
        _passes().unsign(proof, max_age=LIMITS.challenge_lifetime_seconds)
    except BadSignature as error:
        raise ChallengeFailed from error
    try:
        _passes().unsign(proof, max_age=LIMITS.challenge_wait_seconds)
    except BadSignature:
        return
    raise ChallengeTooEarly


def _fingerprint(proof: str) -> str:
    """What makes two proofs the same, however they are spelled: the signature alone decides."""
    try:
        return Payload.from_base64(proof).signature
    except (ValueError, KeyError, TypeError):
        return salted_hmac(SALT, proof).hexdigest()


def _subject(*, item_id: int, buyer_id: int) -> str:
    return f"{item_id}.{buyer_id}"


def _key() -> str:
    return salted_hmac(SALT, "key").hexdigest()


def _passes() -> TimestampSigner:
    return TimestampSigner(salt=f"{SALT}.pass")
