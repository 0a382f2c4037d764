"""What a database session does for a process that stands still in the middle of its work: it lets go in time."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction
from django.utils import timezone

from orders.models import Order
from seckill.outcomes import lock_bucket
from seckill.settlement import settle_bucket
from seckill.transient import is_transient
from seckill.turns import only_one
from tests.support.shop import Shop, buy, make_ticket, open_sale
from tests.support.web import wait_until


@contextmanager
def other_session(*, seconds: dict[str, int]) -> Iterator[Any]:
    """A second connection with shorter timeouts than usual, as the one of a process that was stopped."""
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            for name, value in seconds.items():
                cursor.execute(f"SET SESSION {name} = {value}")
        yield other
    finally:
        other.close()


def idle_limits() -> dict[str, int]:
    """What ends a session in a transaction that stands still, and after how many seconds.

    MySQL knows no idle_transaction_timeout; there it is wait_timeout alone.
    """
    limits = {"wait_timeout": 60}
    return {"idle_transaction_timeout": 20, **limits} if connection.mysql_is_mariadb else limits  # type: ignore[attr-defined]


def test_every_session_has_its_limits() -> None:
    """DESIGN 7."""
    limits = {"innodb_lock_wait_timeout": 4, **idle_limits()}
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(f'@@{name}' for name in limits)}")
        assert cursor.fetchone() == tuple(limits.values())


@pytest.mark.slow
def test_a_holder_that_stands_still_loses_the_lock_and_its_transaction() -> None:
    """By any of the limits alone."""
    shop = open_sale()
    for limit in idle_limits():
        assert_lock_is_lost(shop, limit=limit)


def assert_lock_is_lost(shop: Shop, *, limit: str) -> None:
    """The lock is free after the limit; when the holder goes on, nothing of its transaction is written."""
    never = {"idle_transaction_timeout": 0, "wait_timeout": 60}
    with other_session(seconds={**{name: never[name] for name in idle_limits()}, limit: 1}) as stopped:
        stopped.set_autocommit(False)
        with stopped.cursor() as cursor:
            cursor.execute("UPDATE seckill_bucket SET adj_no = 7 WHERE pool_id = %s", [shop.pool.pk])
        begun = time.monotonic()
        with transaction.atomic():
            assert lock_bucket(shop.bucket).adj_no == 0
        assert 0.5 < time.monotonic() - begun < 3
        with pytest.raises(OperationalError) as raised:
            stopped.commit()
        assert is_transient(raised.value)
    with transaction.atomic():
        assert lock_bucket(shop.bucket).adj_no == 0


@pytest.mark.slow
def test_a_settler_that_stands_still_between_two_batches_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock that thins settlers out belongs to the session, and wait_timeout ends that outside a transaction too."""
    shop = open_sale()
    buy(make_ticket(shop))
    with other_session(seconds={"wait_timeout": 1}) as stopped:
        monkeypatch.setattr("seckill.turns.connection", stopped)
        thinning = only_one(work=f"settle:{shop.bucket}")
        assert thinning.__enter__()
        monkeypatch.undo()
        assert settle_bucket(bucket=shop.bucket, clock=timezone.now).entries == 0
        settled = []

        def is_settled() -> bool:
            settled.append(settle_bucket(bucket=shop.bucket, clock=timezone.now).entries)
            return settled[-1] == 1

        wait_until(is_settled, seconds=5)
    assert Order.objects.count() == 1
