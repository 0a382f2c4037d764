"""A master dies, its replica takes over: what the replica never had is found by its run id, and the sale goes on."""

import time
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from pytest_django import Settings

from benchmarks.servers import Server
from benchmarks.servers.redis_cluster import RedisCluster
from seckill.errors import GateUnavailable, NotPreheated
from seckill.gate.nodes import slot_of
from seckill.models import Incident, Reservation
from seckill.polling import PurchaseState, purchase_status
from seckill.purchase import purchase
from seckill.settlement import settle_bucket
from tests.support.aliases import point
from tests.support.rush import Rush, sweep_once, sweeping
from tests.support.shop import Shop, buy, make_buyers, make_tickets, open_sale, ticket_of
from tests.support.state import assert_settled_state, numbers, sold_units
from tests.support.web import wait_until

OPEN_AGAIN_SECONDS_MAX = 15
UNITS = 400


def master_of(cluster: RedisCluster, shop: Shop) -> Server:
    return cluster.owner(slot_of(shop.bucket.keys[0]))


def replica_of(cluster: RedisCluster, master: Server) -> Server:
    with cluster.client(master) as client:
        (told,) = (client.info("replication")[f"slave{n}"] for n in range(1))
    return cluster.node_at(int(told["port"]))


@pytest.fixture
def whole_again(cluster: RedisCluster) -> Iterator[None]:
    """Bring dead nodes back, as replicas of those that took over, before the next test."""
    yield
    for node in cluster.nodes:
        node.start()
        with cluster.client(node) as client:
            client.config_set("masterauth", "")
    cluster.await_whole()


def cut_off(cluster: RedisCluster, master: Server) -> Server:
    """Keep a replica from its master, which goes on accepting; return the replica."""
    replica = replica_of(cluster, master)
    with cluster.client(replica) as client:
        client.config_set("masterauth", "wrong")
    with cluster.client(master) as client:
        client.execute_command("CLIENT", "KILL", "TYPE", "replica")

    def is_cut() -> bool:
        with cluster.client(replica) as its_client:
            return bool(its_client.info("replication")["master_link_status"] == "down")

    wait_until(is_cut, seconds=5)
    return replica


def await_owner(cluster: RedisCluster, shop: Shop, owner: Server) -> None:
    def has_it() -> bool:
        with cluster.client(owner) as client:
            return bool(client.info("replication")["role"] == "master")

    wait_until(has_it, seconds=OPEN_AGAIN_SECONDS_MAX)


def settle(shop: Shop) -> None:
    settle_bucket(bucket=shop.bucket, clock=timezone.now)


@pytest.mark.usefixtures("whole_again")
def test_a_master_killed_in_a_rush(cluster: RedisCluster) -> None:
    """Every buyer has an answer that is true, the books agree, and the sale stands still for seconds only."""
    shop = open_sale(units=UNITS)
    tickets = make_tickets(shop, UNITS)
    rush = Rush()
    with sweeping(), rush.of(tickets, pause=0.02):
        wait_until(lambda: len(rush.answers) > UNITS // 8, seconds=20)
        killed_at = time.monotonic()
        master_of(cluster, shop).kill()
    assert rush.seconds_without(since=killed_at) < OPEN_AGAIN_SECONDS_MAX
    assert rush.unavailable > 0
    # Nobody was told "sold out": there is a unit for each. Who was accepted by what was lost buys again.
    assert all("-" in answer for answer in rush.answers.values())
    assert [rush.buy(ticket) for ticket in tickets] == [rush.answers[ticket] for ticket in tickets]
    sweep_once()
    settle(shop)
    assert_settled_state(shop, sold=UNITS)
    assert Incident.objects.filter(kind="redis_lost").exists()
    assert not Incident.objects.filter(resolved_at=None).exists()


SETTLED, LOST_SETTLED, LOST_QUEUED = 5, 3, 3


def lose_the_last_writes(cluster: RedisCluster, shop: Shop, buyers: list[User]) -> list[str]:
    """Sell to all; of the last ones the replica that takes over hears nothing. Return the order numbers."""
    tickets = [ticket_of(shop, buyer) for buyer in buyers]
    orders = [buy(ticket) for ticket in tickets[:SETTLED]]
    settle(shop)
    with cluster.client(master_of(cluster, shop)) as client:
        assert client.wait(1, 5_000) == 1
    master = master_of(cluster, shop)
    replica = cut_off(cluster, master)
    orders += [buy(ticket) for ticket in tickets[SETTLED : SETTLED + LOST_SETTLED]]
    settle(shop)
    orders += [buy(ticket) for ticket in tickets[SETTLED + LOST_SETTLED :]]
    master.kill()
    await_owner(cluster, shop, replica)
    return orders


@pytest.mark.usefixtures("whole_again")
def test_writes_that_the_replica_never_had_are_found_before_anything_is_sold(cluster: RedisCluster) -> None:
    """Settled ones stay sold, queued ones are known as lost and their tickets are good again; no unit is sold twice."""
    shop = open_sale(units=SETTLED + LOST_SETTLED + LOST_QUEUED)
    buyers = make_buyers(SETTLED + LOST_SETTLED + LOST_QUEUED)
    orders = lose_the_last_writes(cluster, shop, buyers)
    (late,) = make_tickets(shop, 1)
    wait_until(lambda: is_refused_as_unavailable(late), seconds=OPEN_AGAIN_SECONDS_MAX)
    sweep_once()
    assert "the server was restarted" in Incident.objects.get(kind="redis_lost").detail
    wait_until(lambda: numbers(shop).left == {shop.item.pk: LOST_QUEUED}, seconds=5)
    states = [
        purchase_status(order_no=number, buyer_id=buyer.pk).state for number, buyer in zip(orders, buyers, strict=True)
    ]
    kept = SETTLED + LOST_SETTLED
    assert states == [PurchaseState.CONFIRMED] * kept + [PurchaseState.NOT_RESERVED] * LOST_QUEUED
    assert {buy(ticket_of(shop, buyer)) for buyer in buyers[:kept]} == {"LimitReached"}
    assert all("-" in buy(ticket_of(shop, buyer)) for buyer in buyers[kept:])
    assert buy(late) == "SoldOut"
    settle(shop)
    assert_settled_state(shop, sold=len(buyers))


def state_of(number: str, buyer: User) -> PurchaseState:
    return purchase_status(order_no=number, buyer_id=buyer.pk).state


def is_refused_as_unavailable(ticket: str) -> bool:
    """Tell whether the script itself says so, of the node that took over."""
    try:
        purchase(ticket=ticket, quantity=1)
    except GateUnavailable as error:
        return "restarted" in str(error) or "damaged" in str(error) or str(error) == ""
    return False


def claim_to_be_the_same(connection: object) -> None:
    """Stand in for the handshake: every node pretends to be the one the gate was made by."""
    connection.run_id = SAME  # type: ignore[attr-defined]


SAME = "0" * 40


@pytest.mark.usefixtures("whole_again")
def test_control_without_run_ids_who_was_settled_is_sold_a_second_unit(
    cluster: RedisCluster, settings: Settings
) -> None:
    """The control: a gate that does not ask which server it is sells from what the replica has."""
    stock = settings.CACHES["stock"]
    point(settings, "stock", stock["LOCATION"], redis_connect_func=claim_to_be_the_same)
    shop = open_sale(units=SETTLED + LOST_SETTLED + LOST_QUEUED)
    buyers = make_buyers(SETTLED + LOST_SETTLED + LOST_QUEUED)
    lose_the_last_writes(cluster, shop, buyers)
    again = [buy(ticket_of(shop, buyer)) for buyer in buyers[SETTLED : SETTLED + LOST_SETTLED]]
    assert all("-" in answer for answer in again)
    # MySQL is the second fence: it refuses what Redis should not have sold.
    settle(shop)
    assert sold_units(shop) == SETTLED + LOST_SETTLED
    assert Reservation.objects.filter(state="SETTLED").count() == SETTLED + LOST_SETTLED


@pytest.mark.usefixtures("whole_again")
def test_a_node_that_comes_back_empty(cluster: RedisCluster) -> None:
    """Its replica copies the emptiness: the bucket is made anew from MySQL, and what was queued may be bought again."""
    shop = open_sale(units=10)
    buyers = make_buyers(8)
    tickets = [ticket_of(shop, buyer) for buyer in buyers]
    orders = [buy(ticket) for ticket in tickets[:5]]
    settle(shop)
    orders += [buy(ticket) for ticket in tickets[5:]]
    master = master_of(cluster, shop)
    replica = replica_of(cluster, master)
    replica.stop()
    cluster.restart_empty(master)
    replica.start()
    wait_until(lambda: is_gone(shop), seconds=OPEN_AGAIN_SECONDS_MAX)
    wait_until(lambda: has_swept(shop), seconds=OPEN_AGAIN_SECONDS_MAX)
    assert "the bucket is not in Redis" in Incident.objects.get(kind="redis_lost").detail
    assert numbers(shop).left == {shop.item.pk: 5}
    assert [buy(ticket) for ticket in tickets] == orders
    settle(shop)
    assert_settled_state(shop, sold=8)


def is_gone(shop: Shop) -> bool:
    try:
        numbers(shop)
    except NotPreheated:
        return True
    except GateUnavailable:
        pass
    return False


def has_swept(shop: Shop) -> bool:
    sweep_once()
    try:
        return numbers(shop).epoch > 1
    except GateUnavailable:
        return False
