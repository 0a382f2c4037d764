"""Buckets on several nodes: each script goes where its keys are, and what is not about a bucket asks every node."""

from itertools import count

from django.utils import timezone

from config.checks import check_stock_redis
from config.doctor.clocks import examine_clocks
from config.doctor.findings import Verdict
from config.doctor.redis_servers import examine_stock_redis
from seckill.gate.nodes import a_bucket_of_each_node, masters
from seckill.gate.pulse import pulses
from seckill.gate.rehearsal import rehearse
from seckill.gate.roll_call import items_in_redis
from seckill.gate.shop_window import units_shown
from seckill.settlement import settle_bucket
from tests.support.nodes import flush_scripts, key_count, node_of
from tests.support.shop import Shop, buy, make_tickets, open_sale
from tests.support.state import numbers, sold_units

NODES = 3


def shops_of_every_node() -> list[Shop]:
    """Open sales until each node has one."""
    found: dict[str, Shop] = {}
    for _ in count():
        shop = open_sale(units=5)
        found.setdefault(node_of(shop.bucket).name, shop)
        if len(found) == NODES:
            return list(found.values())
    raise AssertionError


def test_sales_of_every_node_are_sold_and_settled() -> None:
    shops = shops_of_every_node()
    for shop in shops:
        assert all("-" in buy(ticket) for ticket in make_tickets(shop, 2))
        settle_bucket(bucket=shop.bucket, clock=timezone.now)
        snapshot = numbers(shop)
        assert (snapshot.left, snapshot.queue_length, sold_units(shop)) == ({shop.item.pk: 3}, 0, 2)


def test_a_script_flush_on_one_node_is_mended_there() -> None:
    """CASES 12, per node: the others still have the script."""
    shops = shops_of_every_node()
    for shop in shops:
        flush_scripts()
        assert "-" in buy(make_tickets(shop, 1)[0])
        assert numbers(shop).queue_length == 1


def test_the_shop_window_the_pulse_and_the_roll_call_see_all_nodes() -> None:
    shops = shops_of_every_node()
    buckets = [shop.bucket for shop in shops]
    shown = units_shown(buckets=buckets)
    assert [shown[shop.bucket][shop.item.pk].left for shop in shops] == [5] * NODES
    assert {bucket: pulse.epoch for bucket, pulse in pulses(buckets=buckets).items()} == dict.fromkeys(buckets, 1)
    assert {shop.bucket: (shop.item.pk,) for shop in shops}.items() <= dict(items_in_redis()).items()


def test_every_node_is_rehearsed_checked_and_examined() -> None:
    rehearse()
    names = {name for name, _ in masters()}
    assert len(names) == NODES
    assert {node_of(bucket).name for bucket in a_bucket_of_each_node(0)} == names
    assert check_stock_redis(databases=["default"]) == []
    findings = [*examine_stock_redis(), *examine_clocks()]
    assert {f.topic for f in findings if f.topic.startswith("stock redis")} == {f"stock redis {name}" for name in names}
    assert [f for f in findings if f.verdict is Verdict.FAIL] == []
    assert sum("Cut off from its replicas" in f.what for f in findings) == NODES


def test_a_node_that_evicts_is_an_error_that_names_it() -> None:
    (name, client), *_ = masters()
    client.config_set("maxmemory-policy", "allkeys-lru")
    try:
        (message,) = check_stock_redis(databases=["default"])
        assert (message.id, name in message.msg) == ("seckill.E001", True)
    finally:
        client.config_set("maxmemory-policy", "noeviction")


def test_the_scripts_calls_go_to_one_node_and_once() -> None:
    """An accepted purchase is one call of one node, as it is on a single server."""
    shop = open_sale(units=2)
    first, second = make_tickets(shop, 2)
    buy(first)
    for _, client in masters():
        client.config_resetstat()
    buy(second)
    calls = {name: client.info("commandstats").get("cmdstat_evalsha", {}).get("calls", 0) for name, client in masters()}
    assert calls == {name: int(name == node_of(shop.bucket).name) for name in calls}
    assert key_count() == 5
