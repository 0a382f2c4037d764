"""The commands: what an operator types, what is printed, how it ends."""

import json
import subprocess
import sys
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from benchmarks.servers import PrivateServers
from inventory.models import Stock
from seckill.advice import advice_for
from seckill.gate import gate
from seckill.gate.connection import raw_client
from seckill.models import FlashSale, Incident, ItemBucket, ReconciliationRun, Reservation, SaleItem, Ticket
from seckill.pausing import pause_item
from seckill.tickets import read_ticket
from tests.plugin import ROOT
from tests.support.shop import Shop, buy, make_sale, make_tickets, open_sale
from tests.support.state import assert_settled_state, dump, numbers


def run(name: str, *args: object) -> list[str]:
    """Run a command; return the lines it printed."""
    out = StringIO()
    call_command(name, *[str(arg) for arg in args], stdout=out, no_color=True)
    return out.getvalue().splitlines()


def refused(name: str, *args: object) -> CommandError:
    """Run a command that must fail; return its error."""
    with pytest.raises(CommandError) as caught:
        run(name, *args)
    return caught.value


def tamper(shop: Shop, units: int) -> None:
    """Change the stock in Redis by hand."""
    raw_client().hincrby(shop.bucket.keys[0], f"{shop.item.pk}:left", units)


def test_preheat_brings_a_sale_into_redis() -> None:
    shop = make_sale(units=10)
    assert run("preheat", shop.sale.pk) == [f"sale {shop.sale.pk} is preheated"]
    assert_settled_state(shop, sold=0)
    assert FlashSale.objects.get().state == "PREHEATED"


def test_withdraw_makes_an_untouched_sale_a_draft_again() -> None:
    shop = open_sale(units=10)
    assert run("withdraw", shop.sale.pk) == [f"sale {shop.sale.pk} is withdrawn and a draft again"]
    assert (FlashSale.objects.get().state, Stock.objects.get().on_hand) == ("DRAFT", 10)
    assert str(refused("withdraw", shop.sale.pk)) == "the sale is draft, not preheated"
    assert str(refused("withdraw", 10**9)) == "there is no sale 1000000000"


def test_withdraw_is_refused_after_the_first_reservation() -> None:
    shop = open_sale(units=10)
    buy(make_tickets(shop, 1)[0])
    assert "somebody has reserved something" in str(refused("withdraw", shop.sale.pk))
    assert FlashSale.objects.get().state == "PREHEATED"


def test_preheat_again_changes_nothing() -> None:
    """CASES 6: pressed again in mid-sale, it never raises the balance."""
    shop = open_sale(units=10)
    buy(make_tickets(shop, 1)[0])
    before = dump(shop.bucket)
    error = refused("preheat", shop.sale.pk)
    assert str(error) == "the sale is preheated already; its balance is not touched again"
    assert error.returncode == 1
    assert dump(shop.bucket) == before
    assert ItemBucket.objects.get().allocated == 10


def test_preheat_says_what_is_not_ready() -> None:
    """And changes nothing then, also where the first of two items could be had."""
    short, over = make_sale(units=10, items=2), make_sale(opens_in=timedelta(hours=-2), closes_in=timedelta(seconds=-1))
    SaleItem.objects.filter(pk=short.items[1].pk).update(units=11)
    empty = FlashSale.objects.create(name="x", opens_at=short.sale.opens_at, closes_at=short.sale.closes_at)
    code = short.items[1].sku.code
    assert str(refused("preheat", short.sale.pk)) == f"{code} needs 11 units, the warehouse has 10"
    assert str(refused("preheat", over.sale.pk)) == "the sale's window is over"
    assert str(refused("preheat", empty.pk)) == "the sale has no items"
    assert str(refused("preheat", 10**9)) == "there is no sale 1000000000"
    assert set(FlashSale.objects.values_list("state", flat=True)) == {"DRAFT"}
    assert set(Stock.objects.values_list("on_hand", flat=True)) == {10}
    assert not ItemBucket.objects.exists()
    assert raw_client().dbsize() == 0


def status(shop: Shop) -> dict[str, Any]:
    (line,) = run("sale_status", shop.sale.pk, "--json")
    parsed: dict[str, Any] = json.loads(line)
    return parsed


def test_sale_status_shows_both_stores_side_by_side() -> None:
    shop = open_sale(units=10, limit=3)
    buy(make_tickets(shop, 1)[0], 3)
    item, bucket = shop.item.pk, str(shop.bucket)
    assert run("sale_status", shop.sale.pk) == [
        "秒杀 sale: live",
        f"item={item}  bucket={bucket}  allocated=10  sold=0  left=7  queued=3  epoch=1  frozen=False  paused=False",
    ]
    numbers_of_item = {"allocated": 10, "sold": 0, "left": 7, "queued": 3, "epoch": 1, "frozen": False, "paused": False}
    assert status(shop) == {
        "sale": shop.sale.pk,
        "phase": "live",
        "items": [{"item": item, "bucket": bucket} | numbers_of_item],
    }


def test_sale_status_shows_a_pause_and_a_frozen_gate() -> None:
    shop = open_sale(items=2)
    pause_item(item_id=shop.item.pk)
    assert [row["paused"] for row in status(shop)["items"]] == [True, False]
    raw_client().hset(shop.bucket.keys[1], "frozen", "token")
    assert [row["frozen"] for row in status(shop)["items"]] == [True, True]


def test_sale_status_of_a_sale_that_redis_has_lost() -> None:
    shop = open_sale(units=10)
    raw_client().delete(*shop.bucket.keys)
    (row,) = status(shop)["items"]
    assert (row["allocated"], row["sold"]) == (10, 0)
    assert {row[name] for name in ("left", "queued", "epoch", "frozen", "paused")} == {None}


def test_sale_status_of_a_draft_and_of_no_sale() -> None:
    shop = make_sale()
    assert run("sale_status", shop.sale.pk) == ["秒杀 sale: draft"]
    assert status(shop) == {"sale": shop.sale.pk, "phase": "draft", "items": []}
    assert str(refused("sale_status", 10**9)) == "there is no sale 1000000000"


def test_reconcile_prints_the_terms_of_law_7_and_settles_first() -> None:
    shop = open_sale(units=10, limit=3)
    buy(make_tickets(shop, 1)[0], 3)
    item = shop.item.pk
    assert run("reconcile") == [
        f"bucket {shop.bucket}: balanced",
        f"  item {item}: allocated 10 = sold 3 + left 7 + in flight 0 + owed 0 + adjusting 0 + drift 0",
        "  members: 2 looked at, all of this round, 0 differ",
    ]
    balance = {"item_id": item, "allocated": 10, "sold": 3, "left": 7, "in_flight": 0, "owed": 0}
    balance |= {"adjusting": 0, "drift": 0}
    report = {
        "bucket": str(shop.bucket),
        "verdict": "BALANCED",
        "is_balanced": True,
        "explanation": "",
        "items": [balance],
        "members": {"looked_at": 2, "is_complete": True, "differ": 0, "findings": []},
        "books": [],
        "incidents": [],
    }
    assert json.loads("\n".join(run("reconcile", "--json"))) == [report]


@pytest.mark.parametrize(
    ("units", "verdict", "words", "drift"), [(2, "EXCESS", "too many", -2), (-2, "LEAK", "too few", 2)]
)
def test_reconcile_fails_on_stock_changed_by_hand(units: int, verdict: str, words: str, drift: int) -> None:
    """The numbers are printed and kept, with what to do about it, and left as they are: the command only reads."""
    sound, shop = open_sale(units=5), open_sale(units=10)
    item, left = shop.item.pk, 10 + units
    tamper(shop, units)
    before = dump(shop.bucket)
    out = StringIO()
    with pytest.raises(CommandError, match="not every bucket is balanced") as caught:
        call_command("reconcile", stdout=out)
    assert caught.value.returncode == 1
    opened = Incident.objects.get().opened_at
    assert out.getvalue().splitlines() == [
        f"bucket {sound.bucket}: balanced",
        f"  item {sound.item.pk}: allocated 5 = sold 0 + left 5 + in flight 0 + owed 0 + adjusting 0 + drift 0",
        "  members: 0 looked at, all of this round, 0 differ",
        f"bucket {shop.bucket}: Redis has {words}",
        f"  item {item}: allocated 10 = sold 0 + left {left} + in flight 0 + owed 0 + adjusting 0 + drift {drift}",
        "  members: 0 looked at, all of this round, 0 differ",
        f"  incident drift since {opened:%Y-%m-%d %H:%M:%S} UTC: item {shop.item.pk}: {drift:+d}",
        f"    {advice_for('drift').did}",
        f"    {advice_for('drift').can}",
    ]
    kept = ReconciliationRun.objects.get(pool=shop.pool)
    assert (kept.verdict, kept.drift) == (verdict, 2)
    assert dump(shop.bucket) == before


def test_reconcile_lists_the_members_that_differ_and_repairs_them_on_request() -> None:
    shop = open_sale(units=10)
    order_no = buy(make_tickets(shop, 1)[0])
    run("reconcile")
    buyer = Reservation.objects.get().buyer_id
    raw_client().hdel(shop.bucket.keys[2], str(buyer))
    raw_client().hset(shop.bucket.keys[3], "nobody", f"confirmed|{shop.item.pk}|1|7")
    for extent in ((), ("--full",)):
        out = StringIO()
        with pytest.raises(CommandError, match="not every bucket is balanced"):
            call_command("reconcile", *extent, "--pool", str(shop.pool.pk), stdout=out)
        assert out.getvalue().splitlines()[2:5] == [
            "  members: 3 looked at, all of this round, 2 differ",
            f"    mark {buyer}: Redis nothing, MySQL 1: not repaired",
            f"    receipt nobody: Redis confirmed|{shop.item.pk}|1|7, MySQL no row: left as it is",
        ]
    with pytest.raises(CommandError):
        run("reconcile", "--repair", "--json")
    assert raw_client().hget(shop.bucket.keys[2], str(buyer)) == b"1"
    raw_client().hdel(shop.bucket.keys[3], "nobody")
    (report,) = json.loads("\n".join(run("reconcile", "--full", "--json")))
    assert report["members"] == {"looked_at": 2, "is_complete": True, "differ": 0, "findings": []}
    assert report["incidents"] == []
    assert gate.look_up(bucket=shop.bucket, order_no=order_no) is not None


def test_reconcile_says_where_redis_cannot_be_asked() -> None:
    """What cannot be compared is neither balanced nor drift: exit code 2."""
    shop = open_sale()
    raw_client().delete(*shop.bucket.keys)
    out = StringIO()
    with pytest.raises(CommandError, match="not every bucket could be looked at") as caught:
        call_command("reconcile", stdout=out)
    assert caught.value.returncode == 2
    assert out.getvalue() == f"bucket {shop.bucket}: Redis could not be asked: Redis has lost the bucket\n"
    assert ReconciliationRun.objects.get().verdict == "UNAVAILABLE"


def test_drift_in_one_bucket_is_not_hidden_by_another_that_cannot_be_asked() -> None:
    lost, off = open_sale(), open_sale()
    raw_client().delete(*lost.bucket.keys)
    tamper(off, 1)
    assert refused("reconcile").returncode == 1
    assert refused("reconcile", "--pool", lost.pool.pk).returncode == 2
    assert str(refused("reconcile", "--pool", 10**9)) == "pool 1000000000 is not on sale"


def test_reconcile_of_a_shop_without_a_sale() -> None:
    make_sale()
    assert run("reconcile") == []
    assert run("reconcile", "--json") == ["[]"]
    assert not Incident.objects.exists()


@pytest.mark.slow
@pytest.mark.parametrize(("units", "code"), [(0, 0), (1, 1)])
def test_the_exit_code_of_reconcile(units: int, code: int, servers: PrivateServers) -> None:
    shop = open_sale(units=10)
    tamper(shop, units)
    environment = servers.environment()
    environment["DATABASE_URL"] = environment["DATABASE_URL"].rsplit("/", 1)[0] + f"/{connection.settings_dict['NAME']}"
    command = [sys.executable, "manage.py", "reconcile", "--json"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code
    assert json.loads(done.stdout)[0]["items"][0]["drift"] == -units
    assert ("not every bucket is balanced" in done.stderr) == bool(code)


def test_issue_tickets_writes_tickets_that_buy() -> None:
    shop = open_sale(units=5)
    tickets = run("issue_tickets", shop.item.pk, 3) + run("issue_tickets", shop.item.pk, 2)
    claims = [read_ticket(ticket) for ticket in tickets]
    assert len({claim.buyer_id for claim in claims}) == len({claim.order_no for claim in claims}) == 5
    assert {claim.order_no for claim in claims} == set(Ticket.objects.values_list("order_no", flat=True))
    assert [buy(ticket) for ticket in tickets] == [claim.order_no for claim in claims]
    assert numbers(shop).left == {shop.item.pk: 0}
    assert not any(user.has_usable_password() for user in User.objects.all())


def test_issue_tickets_for_a_load_test() -> None:
    """More than are written at once."""
    shop = open_sale()
    tickets = run("issue_tickets", shop.item.pk, 1_001)
    assert len(set(tickets)) == Ticket.objects.count() == User.objects.count() == 1_001


def test_issue_tickets_for_nothing() -> None:
    assert str(refused("issue_tickets", 10**9, 1)) == "there is no item 1000000000"
    assert run("issue_tickets", open_sale().item.pk, 0) == []
    assert not User.objects.exists()


def test_times_are_told_by_the_server_s_clock() -> None:
    """A sale ends for the operator when it ends for the buyers."""
    shop = open_sale()
    past = timezone.now() - timedelta(seconds=1)
    FlashSale.objects.update(closes_at=past)
    assert status(shop)["phase"] == "ended"
