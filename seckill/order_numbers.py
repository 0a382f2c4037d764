"""Order numbers: they say which bucket they belong to, and nobody can guess one."""

import re
import secrets

from seckill.errors import UnknownOrder
from seckill.gate.keys import BucketRef, bucket_ref

_FORM = re.compile(r"([1-9][0-9]{0,17})-([0-9]{1,4})-([a-z2-7]{16})")
_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"


def new_order_number(bucket: BucketRef) -> str:
    """Return ``<pool>-<bucket>-<80 random bits in base 32>``."""
    return f"{bucket.pool_id}-{bucket.number}-{''.join(secrets.choice(_ALPHABET) for _ in range(16))}"


def bucket_of(order_no: str) -> BucketRef:
    """Return the bucket an order number belongs to.

    Raises ``UnknownOrder`` when it has not the form of one.
    """
    match = _FORM.fullmatch(order_no)
    if match is None:
        raise UnknownOrder
    return bucket_ref(int(match[1]), int(match[2]))
