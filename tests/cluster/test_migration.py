"""A slot moves to another node in a rush, key by key: nobody gets a wrong answer, and nothing is sold twice."""

import threading
import time
from collections.abc import Iterator

import pytest
from django.utils import timezone

from benchmarks.servers import Server
from benchmarks.servers.redis_cluster import RedisCluster
from seckill.errors import GateUnavailable
from seckill.gate import gate
from seckill.gate.connection import raw_client
from seckill.gate.nodes import slot_of
from seckill.models import Incident
from seckill.settlement import settle_bucket
from tests.support.rush import Rush, sweep_once, sweeping
from tests.support.shop import Shop, buy, make_ticket, make_tickets, open_sale
from tests.support.state import assert_settled_state, numbers
from tests.support.web import wait_until

UNITS = 300
# Between any two steps, so that buyers meet each of the states in between.
STEP_SECONDS = 0.05
SECONDS_MAX = 15


@pytest.fixture
def at_home(cluster: RedisCluster) -> Iterator[None]:
    """Give slots back afterwards, so that each node has its share."""
    before = cluster.shares()
    yield
    cluster.restore(before)


def other_master(cluster: RedisCluster, source: Server) -> Server:
    return next(node for node in cluster.serving() if node.port != source.port)


def settle(shop: Shop) -> None:
    settle_bucket(bucket=shop.bucket, clock=timezone.now)


@pytest.mark.usefixtures("at_home")
def test_a_slot_moves_in_a_rush(cluster: RedisCluster) -> None:
    shop = open_sale(units=UNITS)
    tickets = make_tickets(shop, UNITS)
    slot = slot_of(shop.bucket.keys[0])
    source = cluster.owner(slot)
    target = other_master(cluster, source)
    rush = Rush()
    with sweeping(), rush.of(tickets, pause=0.02):
        wait_until(lambda: len(rush.answers) > UNITS // 8, seconds=20)
        began = time.monotonic()
        cluster.move_slot(slot, source=source, target=target, between=lambda: time.sleep(STEP_SECONDS))
    assert cluster.owner(slot).port == target.port
    assert rush.seconds_without(since=began) < SECONDS_MAX
    assert rush.unavailable > 0
    assert all("-" in answer for answer in rush.answers.values())
    assert [rush.buy(ticket) for ticket in tickets] == [rush.answers[ticket] for ticket in tickets]
    sweep_once()
    settle(shop)
    assert_settled_state(shop, sold=UNITS)
    assert not Incident.objects.filter(resolved_at=None).exists()


@pytest.mark.usefixtures("at_home")
def test_while_a_slot_is_half_moved_nothing_is_sold_and_nobody_hears_sold_out(cluster: RedisCluster) -> None:
    """At every step in between: unavailable within the budget, or a true answer; and the keys are as they were."""
    shop = open_sale(units=3)
    bought, wanting = make_tickets(shop, 2)
    number = buy(bought)
    slot = slot_of(shop.bucket.keys[0])
    source = cluster.owner(slot)
    told: list[str] = []
    lock = threading.Lock()

    def ask() -> None:
        with lock:
            began = time.monotonic()
            try:
                told.append(repr(gate.look_up(bucket=shop.bucket, order_no=number)))
            except GateUnavailable as error:
                told.append(type(error).__name__)
            assert time.monotonic() - began < 1

    cluster.move_slot(slot, source=source, target=other_master(cluster, source), between=ask)
    # Whole on its old node; then half here and half there; then whole on one whose run id the gate does not know.
    whole, half, whole_again = told[:2], told[2:-2], told[-2:]
    assert [answer.partition("(")[0] for answer in whole] == ["Receipt"] * 2
    assert half == ["GateUnavailable"] * 4
    assert whole_again == ["BucketUnsound"] * 2
    wait_until(lambda: is_swept(shop), seconds=SECONDS_MAX)
    assert (numbers(shop).epoch, numbers(shop).left) == (2, {shop.item.pk: 2})
    assert buy(bought) == number
    assert "-" in buy(wanting)
    settle(shop)
    assert_settled_state(shop, sold=2)


def is_swept(shop: Shop) -> bool:
    sweep_once()
    try:
        return numbers(shop).epoch == 2
    except GateUnavailable:
        return False


@pytest.mark.usefixtures("at_home")
def test_plain_commands_follow_a_slot_too(cluster: RedisCluster) -> None:
    """The rebuild's, the archive's and the window's: after MOVED they know the way."""
    shop = open_sale(units=1)
    slot = slot_of(shop.bucket.keys[0])
    source = cluster.owner(slot)
    assert raw_client().exists(*shop.bucket.keys) == 5
    cluster.move_slot(slot, source=source, target=other_master(cluster, source), between=lambda: None)
    assert raw_client().type(shop.bucket.keys[4]) == b"stream"
    assert raw_client().exists(*shop.bucket.keys) == 5
    wait_until(lambda: is_swept(shop), seconds=SECONDS_MAX)
    assert "-" in buy(make_ticket(shop))
