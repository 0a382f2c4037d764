"""The unsafe versions that control tests swap in: what a shop does that has not read the cases."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import pytest
from django.conf import settings
from redis import Redis

from seckill.gate import gate
from seckill.gate.codes import ReserveCode
from seckill.gate.gate import ReserveReply
from seckill.gate.keys import BucketRef
from tests.support.nodes import server_of

RACE_SECONDS_MAX = 30


def unsafe_gate(monkeypatch: pytest.MonkeyPatch, *, racers: int) -> None:
    """Replace the script by a check and a write in separate calls.

    All racers have checked before the first of them writes: the interleaving that a shop meets now
    and then, made certain.
    """
    all_have_checked = threading.Barrier(racers, timeout=RACE_SECONDS_MAX)
    monkeypatch.setattr(gate, "reserve", partial(_check_then_decrement, all_have_checked))


def _check_then_decrement(
    all_have_checked: threading.Barrier,
    *,
    bucket: BucketRef,
    item_id: int,
    limit_key: str,
    quantity: int,
    **_others: Any,
) -> ReserveReply:
    stock, gate_key, buyers, _, _ = bucket.keys
    client = _client(bucket)
    left = int(client.hget(stock, f"{item_id}:left") or 0)
    held = int(client.hget(buyers, limit_key) or 0)
    limit = int(client.hget(gate_key, "limit") or 0)
    all_have_checked.wait()
    if held + quantity > limit:
        return ReserveReply(code=ReserveCode.LIMIT_REACHED, number=held, is_wake_up_wanted=False)
    if left < quantity:
        return ReserveReply(code=ReserveCode.SOLD_OUT, number=max(left, 0), is_wake_up_wanted=False)
    client.hincrby(stock, f"{item_id}:left", -quantity)
    client.hincrby(buyers, limit_key, quantity)
    return ReserveReply(code=ReserveCode.RESERVED, number=0, is_wake_up_wanted=False)


@cache
def _client(bucket: BucketRef) -> Any:
    """A client with a connection for every thread of a race: a node's has one, a single server gets one of its own."""
    if "NODES" in settings.CACHES["stock"]["OPTIONS"]:
        return server_of(bucket)
    return Redis.from_url(settings.CACHES["stock"]["LOCATION"], max_connections=2_000, protocol=2)


@contextmanager
def everybody(*, work: str) -> Iterator[bool]:
    """Stand in for ``only_one``: it is everybody's turn."""
    yield True
