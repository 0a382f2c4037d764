"""``manage.py archive``: what an operator types, sees and is told when it does not work."""

from datetime import timedelta
from io import StringIO

from django.core.management import CommandError, call_command

from seckill.archive_tables import ArchiveRun
from seckill.gate.connection import raw_client
from seckill.models import FlashSale
from tests.support.archive import assert_archived, end
from tests.support.shop import Shop, buy, make_tickets, open_sale


class Terminal(StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        """It is one."""
        return True


def run(*args: object) -> tuple[list[str], list[str]]:
    """Run the command; return what it printed, and what it complained of."""
    out, err = StringIO(), StringIO()
    try:
        call_command("archive", *[str(arg) for arg in args], stdout=out, stderr=err, no_color=True)
    except CommandError as error:
        err.write(f"{error} ({error.returncode})")
    return out.getvalue().splitlines(), err.getvalue().splitlines()


def sold_out_of(units: int, *, sold: int) -> Shop:
    shop = open_sale(units=units)
    for ticket in make_tickets(shop, sold):
        buy(ticket)
    end(shop)
    return shop


def test_lines_where_there_is_no_terminal() -> None:
    shop = sold_out_of(5, sold=2)
    name = f"bucket {shop.pool.pk}:0"
    out, err = run("--sale", shop.sale.pk)
    assert out == [
        f"{name}: settling and sealing",
        f"{name}: emptying the queue",
        f"{name}: copying buyers 0 of 2",
        f"{name}: comparing buyers 0 of 2",
        f"{name}: checking receipts 0 of 2",
        f"{name}: clearing leftovers",
        f"{name}: freeing Redis",
        f"{name}: done",
        f"{name}: archived, 2 buyers, 3 units to the warehouse",
    ]
    assert err == []
    assert_archived(shop, sold=2)


def test_bars_on_a_terminal() -> None:
    shop = sold_out_of(5, sold=2)
    out = Terminal()
    call_command("archive", "--sale", str(shop.sale.pk), stdout=out)
    shown = out.getvalue()
    assert f"{shop.pool.pk}:0 copying buyers" in shown
    assert "2/2" in shown
    assert "archived, 2 buyers, 3 units to the warehouse" in shown
    assert_archived(shop, sold=2)


def test_a_dry_run_changes_nothing() -> None:
    shop, is_open = sold_out_of(5, sold=2), open_sale()
    out, _ = run("--sale", shop.sale.pk, "--dry-run")
    assert out == [f"sale {shop.sale.pk}: would be archived: 1 buckets, 0 units sold, 2 in the queue, 3 left over"]
    out, _ = run("--sale", is_open.sale.pk, "--dry-run")
    assert out[0].startswith(f"sale {is_open.sale.pk}: cannot be archived now: the sale is open until")
    assert not ArchiveRun.objects.exists()
    assert set(FlashSale.objects.values_list("state", flat=True)) == {"PREHEATED"}


def test_without_a_sale_it_takes_what_is_due() -> None:
    shop, fresh = sold_out_of(5, sold=1), sold_out_of(5, sold=1)
    assert run() == (["no sale is due"], [])
    end(shop, ago=timedelta(hours=1))
    out, err = run()
    assert out[-1].endswith("archived, 1 buyers, 4 units to the warehouse")
    assert_archived(shop, sold=1)
    assert FlashSale.objects.get(pk=fresh.sale.pk).state == "PREHEATED"
    assert err == []


def test_it_goes_on_with_what_stands_still() -> None:
    """A run that was begun and stopped is taken up by the command without a sale as well."""
    shop = sold_out_of(5, sold=1)
    raw_client().xadd(shop.bucket.keys[4], {"order": "x"})
    out, err = run("--sale", shop.sale.pk)
    assert "waits for: 1 dead letters" in out[-1]
    assert err == [f"not archived: sale {shop.sale.pk} (1)"]
    out, _ = run("--accept-dead-letters")
    assert out[-1].endswith("archived, 1 buyers, 4 units to the warehouse")
    assert_archived(shop, sold=1)


def test_refusals_are_told_in_words() -> None:
    is_open = open_sale()
    _, err = run("--sale", 0)
    assert err == ["sale 0: there is no sale 0", "not archived: sale 0 (1)"]
    _, err = run("--sale", is_open.sale.pk)
    assert err[0].startswith(f"sale {is_open.sale.pk}: the sale is open until")


def test_a_bucket_that_is_not_sound_is_told() -> None:
    shop = sold_out_of(5, sold=0)
    raw_client().hset(shop.bucket.keys[1], "frozen", "x")
    _, err = run("--sale", shop.sale.pk)
    assert err[0] == (
        f"sale {shop.sale.pk}: bucket {shop.bucket} is to be rebuilt first: the gate is frozen and no rebuild is at it"
    )
