"""Pause and resume when the database or Redis does not play along."""

import threading

import pytest
from django.db import connection, connections, transaction
from django.utils import timezone

from benchmarks.servers import PrivateServers
from seckill.errors import GateUnavailable, SaleNotReady
from seckill.models import SaleItem
from seckill.outcomes import lock_bucket
from seckill.pausing import pause_item, resume_item
from seckill.rebuild import rebuild_bucket
from tests.support.shop import buy, make_ticket, open_sale


@pytest.mark.slow
def test_a_busy_bucket_is_explained_and_nothing_is_changed() -> None:
    shop = open_sale()
    is_locked, is_done = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            lock_bucket(shop.bucket)
            is_locked.set()
            is_done.wait(timeout=30)
        connections.close_all()

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        assert is_locked.wait(timeout=30)
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION innodb_lock_wait_timeout = 1")
        with pytest.raises(SaleNotReady, match="busy"):
            pause_item(item_id=shop.item.pk)
    finally:
        is_done.set()
        holder.join()
        connection.close()
    assert not SaleItem.objects.get(pk=shop.item.pk).is_paused
    assert "-" in buy(make_ticket(shop))


def test_an_unknown_item_is_explained() -> None:
    for wish in (pause_item, resume_item):
        with pytest.raises(SaleNotReady, match="there is no item 999"):
            wish(item_id=999)


def test_a_pause_while_redis_is_away_is_kept(servers: PrivateServers) -> None:
    shop = open_sale()
    servers.stock_redis.stop()
    try:
        with pytest.raises(GateUnavailable):
            pause_item(item_id=shop.item.pk)
    finally:
        servers.stock_redis.start()
    rebuild_bucket(bucket=shop.bucket, clock=timezone.now)
    assert buy(make_ticket(shop)) == "Paused"
