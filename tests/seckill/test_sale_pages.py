"""The sale desk's pages: what they refuse, what they say, what they do, and what they cost."""

from datetime import timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import DatabaseError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from actions.log import Who
from actions.models import ActionEntry, Channel, Stage
from inventory.changes import ChangeState
from inventory.services import receive
from seckill.change_tables import WindowChange
from seckill.models import FlashSale, SaleItem, SalePool
from seckill.sale_making import SaleDetails, create_sale
from seckill.sale_plan import PlannedItem, PlannedPool, SalePlan
from seckill.sale_word import SaleWord, word_of_phase
from seckill.states import SalePhase, SaleState
from tests.support.forms import fields_of
from tests.support.people import person
from tests.support.shop import Shop, buy, make_sale, make_ticket, open_sale

QUERIES_MAX = 20
# Preheating moves each item's units in the ledger and rebuilds its bucket; buyers and orders cost nothing.
PREHEAT_QUERIES_MAX, PREHEAT_QUERIES_PER_ITEM = 53, 7
# Reads the file as the preview did, and writes the items and two rows of the log.
IMPORT_QUERIES_MAX = 28
WHY = {"reason": "wrong price"}
ALL = (
    "view_flashsale",
    "add_flashsale",
    "change_flashsale",
    "add_salepool",
    "add_saleitem",
    "add_windowchange",
)
HOUR = timedelta(hours=1)


def browser(*codenames: str) -> Client:
    client = Client()
    client.force_login(person(*codenames))
    return client


@pytest.fixture
def operator() -> Client:
    """The browser of somebody who may do everything with sales."""
    return browser(*ALL)


def words(answer: Any) -> str:
    return " ".join(answer.content.decode().split())


def page(name: str, shop: Shop, *args: str) -> str:
    return reverse(name, args=[shop.sale.pk, *args])


def form(shop: Shop, **changed: str) -> dict[str, str]:
    """A filled-in form for a sale of a shop's first SKU."""
    now = timezone.localtime()
    return {
        "name": "双十一",
        "opens_at": (now + HOUR).strftime("%Y-%m-%dT%H:%M"),
        "closes_at": (now + 2 * HOUR).strftime("%Y-%m-%dT%H:%M"),
        "pay_window_minutes": "15",
        "preheat_minutes": "15",
        "rules": "",
        "pools-TOTAL_FORMS": "2",
        "pools-INITIAL_FORMS": "0",
        "pools-0-name": "public",
        "pools-0-limit_per_buyer": "1",
        "pools-1-name": "members",
        "pools-1-limit_per_buyer": "2",
        "items-TOTAL_FORMS": "4",
        "items-INITIAL_FORMS": "0",
        "items-0-pool": "1",
        "items-0-sku": shop.item.sku.code,
        "items-0-price": "1600.00",
        "items-0-units": "3",
        "items-1-pool": "2",
        "items-1-sku": shop.item.sku.code.lower(),
        "items-1-price": "1500.00",
        "items-1-units": "7",
        "items-2-pool": "1",
        "items-3-pool": "1",
        **changed,
    }


def test_a_sale_is_made_of_one_form(operator: Client) -> None:
    shop = make_sale(units=10, opens_in=3 * HOUR, closes_in=4 * HOUR)
    with CaptureQueriesContext(connection) as queries:
        answer = operator.post(reverse("desk_sale_new"), form(shop))
    assert len(queries) <= QUERIES_MAX
    sale = FlashSale.objects.get(name="双十一")
    assert answer["Location"] == reverse("desk_sale", args=[sale.pk])
    assert sale.state == SaleState.DRAFT
    pools = SalePool.objects.filter(sale=sale).order_by("pk")
    assert ActionEntry.objects.get().after["name"] == "双十一"
    assert list(pools.values_list("name", "limit_per_buyer", "items__units")) == [("public", 1, 3), ("members", 2, 7)]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"items-0-units": "4"}, "11 units of"),
        ({"items-0-price": "3000"}, "is above the list price of"),
        ({"items-0-price": "1499"}, "type it a second time"),
        ({"items-0-price": "1499", "items-0-price_again": "1489"}, "The two prices differ"),
        ({"items-0-sku": "X-9"}, "There is no SKU with this code"),
        ({"items-0-pool": "3"}, "There is no pool of this number above"),
        ({"closes_at": "2020-01-01T00:00"}, "The sale closes before it opens"),
        ({"pools-0-limit_per_buyer": "0"}, "at least 1 unit"),
    ],
)
def test_a_mistake_is_told_and_nothing_is_written(operator: Client, changed: dict[str, str], said: str) -> None:
    shop = make_sale(units=10)
    answer = operator.post(reverse("desk_sale_new"), form(shop, **changed))
    assert answer.status_code == 422
    assert said in words(answer)
    assert FlashSale.objects.count() == 1


def test_a_sale_and_its_row_of_the_log_are_written_both_or_neither() -> None:
    shop = make_sale(units=10)
    opens_at = timezone.now() + HOUR
    item = PlannedItem(sku_id=shop.item.sku_id, price=shop.item.sku.list_price, units=1)
    pool = PlannedPool(name="", limit_per_buyer=1, items=(item,))
    plan = SalePlan(name="new", opens_at=opens_at, closes_at=opens_at + HOUR, pools=(pool,))
    nobody, clerk = (Who(account_id=None, name=name, channel=Channel.DESK) for name in ("", "clerk"))
    with pytest.raises(DatabaseError, match="actionentry_by_somebody"):
        create_sale(plan=plan, details=SaleDetails(), by=nobody, now=timezone.now())
    assert (FlashSale.objects.count(), SaleItem.objects.count(), ActionEntry.objects.count()) == (1, 1, 0)
    create_sale(plan=plan, details=SaleDetails(), by=clerk, now=timezone.now())
    assert (FlashSale.objects.count(), SaleItem.objects.count(), ActionEntry.objects.get().who) == (2, 2, "clerk")


def test_the_empty_form_opens(operator: Client) -> None:
    with CaptureQueriesContext(connection) as queries:
        answer = operator.get(reverse("desk_sale_new"))
    assert answer.status_code == 200
    assert len(queries) <= QUERIES_MAX


@pytest.mark.parametrize("state", SaleState)
def test_a_sale_s_page_costs_the_same_in_every_state(operator: Client, state: SaleState) -> None:
    shop = make_sale(items=12)
    FlashSale.objects.update(state=state)
    with CaptureQueriesContext(connection) as queries:
        answer = operator.get(page("desk_sale", shop))
    assert answer.status_code == 200
    assert len(queries) <= QUERIES_MAX
    assert str(SaleState(state).label) in words(answer)


@pytest.mark.parametrize("items", [1, 12])
def test_preheat_shows_what_it_does_and_does_it(operator: Client, items: int) -> None:
    shop = make_sale(units=7, items=items)
    with CaptureQueriesContext(connection) as queries:
        seen = operator.get(page("desk_sale_preheat", shop))
    assert len(queries) <= QUERIES_MAX
    assert f"{7 * items} units go from the warehouse to this sale, into one pool." in words(seen)
    assert f"<code>{shop.bucket.keys[0]}</code>" in words(seen)
    for reason in ("", " ", "ab"):
        operator.post(page("desk_sale_preheat", shop), fields_of(seen.content) | {"reason": reason})
    assert (FlashSale.objects.get().state, ActionEntry.objects.count()) == (SaleState.DRAFT, 0)
    with CaptureQueriesContext(connection) as queries:
        operator.post(page("desk_sale_preheat", shop), fields_of(seen.content) | WHY)
    assert len(queries) <= PREHEAT_QUERIES_MAX + PREHEAT_QUERIES_PER_ITEM * items
    assert "-" in buy(make_ticket(shop))


def test_a_preheat_of_what_changed_since_is_refused(operator: Client) -> None:
    shop = make_sale(units=7)
    seen = operator.get(page("desk_sale_preheat", shop))
    SaleItem.objects.update(price=1)
    answer = operator.post(page("desk_sale_preheat", shop), fields_of(seen.content) | WHY)
    assert "the sale was changed since you looked at it" in words(answer)
    assert FlashSale.objects.get().state == SaleState.DRAFT


def preheat_form(client: Client, shop: Shop) -> dict[str, str]:
    return fields_of(client.get(page("desk_sale_preheat", shop)).content) | WHY


def act(client: Client, shop: Shop, name: str, reason: str = "wrong price") -> str:
    return words(client.post(page("desk_sale_action", shop, name), {"reason": reason}, follow=True))


def twice(what: str, *, reason: str = "wrong price", end: Stage = Stage.DONE) -> list[tuple[str, str, str]]:
    """The rows of the action log before and after something."""
    return [(f"seckill.{what}", stage, reason) for stage in (Stage.BEGUN, end)]


def test_a_sale_goes_through_its_life(operator: Client) -> None:
    shop = make_sale()
    assert "The sale is scheduled." in act(operator, shop, "schedule")
    assert "The sale is a draft again." in act(operator, shop, "unschedule")
    operator.post(page("desk_sale_preheat", shop), preheat_form(operator, shop))
    assert "1 items are paused." in act(operator, shop, "pause")
    assert buy(make_ticket(shop)) == "Paused"
    assert "1 items are on sale again." in act(operator, shop, "resume")
    assert "its units are in the warehouse" in act(operator, shop, "withdraw")
    operator.post(page("desk_sale_preheat", shop), preheat_form(operator, shop))
    ticket = make_ticket(shop)
    assert "-" in buy(ticket)
    assert "somebody has reserved something already" in act(operator, shop, "withdraw")
    assert "The sale has ended." in act(operator, shop, "end")
    assert buy(make_ticket(shop)) == "Ended"
    assert [(entry.what, entry.stage, entry.reason) for entry in ActionEntry.objects.order_by("pk")] == [
        *twice("schedule"),
        *twice("unschedule"),
        *twice("preheat"),
        *twice("pause"),
        *twice("resume"),
        *twice("withdraw"),
        *twice("preheat"),
        *twice("withdraw", end=Stage.FAILED),
        *twice("end"),
    ]
    paused = ActionEntry.objects.get(what="seckill.pause", stage=Stage.DONE)
    assert (paused.before["items_paused"], paused.after["items_paused"]) == (0, 1)


@pytest.mark.parametrize("name", ["schedule", "unschedule", "pause", "resume", "end", "withdraw"])
def test_nothing_is_done_without_a_reason_or_by_looking(operator: Client, name: str) -> None:
    shop = open_sale()
    for path in (page("desk_sale_action", shop, name), page("desk_sale_window", shop)):
        with CaptureQueriesContext(connection) as queries:
            assert operator.get(path).status_code == 200
        assert len(queries) <= QUERIES_MAX
    act(operator, shop, name, reason=" ")
    assert "-" in buy(make_ticket(shop))
    assert FlashSale.objects.get().state == SaleState.PREHEATED


def test_what_does_not_fit_the_state_is_said(operator: Client) -> None:
    shop = make_sale()
    assert "The sale is draft: this cannot be done now." in words(operator.get(page("desk_sale_action", shop, "end")))
    assert "The sale is draft: this cannot be done now." in act(operator, shop, "end")
    assert operator.get(page("desk_sale_action", shop, "burn")).status_code == 404


def test_another_window_is_asked_for(operator: Client) -> None:
    shop = open_sale()
    seen = operator.get(page("desk_sale_window", shop))
    data = {**fields_of(seen.content), "closes_at": "2100-01-01T00:00", "reason": "more time"}
    assert "Requested." in words(operator.post(page("desk_sale_window", shop), data, follow=True))
    change = WindowChange.objects.get()
    assert (change.state, change.closes_at.year, change.reason) == (ChangeState.REQUESTED, 2100, "more time")


def test_items_are_imported_as_they_were_shown(operator: Client) -> None:
    shop, other = make_sale(opens_in=HOUR, closes_in=2 * HOUR), make_sale(units=5)
    receive(sku_id=other.item.sku_id, units=5, reference="more", now=timezone.now())
    content = f"sku,price,units\n{other.item.sku.code},1500.00,5\n".encode("gb18030")
    file = SimpleUploadedFile("items.csv", content)
    with CaptureQueriesContext(connection) as queries:
        seen = operator.post(page("desk_sale_import", shop), {"pool": shop.pool.pk, "file": file})
    assert len(queries) <= QUERIES_MAX
    assert "1 item, no mistakes" in words(seen)
    assert SaleItem.objects.filter(pool=shop.pool).count() == 1
    data = {**fields_of(seen.content), "write": ""}
    for reason in ("", " ", "ab"):
        again = operator.post(page("desk_sale_import", shop), data | {"reason": reason})
        assert "1 item, no mistakes" in words(again)
    assert (SaleItem.objects.filter(pool=shop.pool).count(), ActionEntry.objects.count()) == (1, 0)
    data["reason"] = "two sizes more"
    with CaptureQueriesContext(connection) as queries:
        written = operator.post(page("desk_sale_import", shop), data)
    assert len(queries) <= IMPORT_QUERIES_MAX
    assert "1 items were imported." in words(operator.get(written["Location"]))
    assert list(SaleItem.objects.filter(pool=shop.pool).values_list("units", flat=True)) == [10, 5]
    assert {entry.reason for entry in ActionEntry.objects.all()} == {"two sizes more"}


def test_a_bad_file_is_told_line_by_line(operator: Client) -> None:
    shop = make_sale()
    file = SimpleUploadedFile("items.csv", b"sku,price,units\n<b>X</b>,1,1\n")
    said = words(operator.post(page("desk_sale_import", shop), {"pool": shop.pool.pk, "file": file}))
    assert "<td>2</td> <td>sku</td> <td>&lt;b&gt;X&lt;/b&gt;</td>" in said
    operator.post(page("desk_sale_import", shop), {"pool": shop.pool.pk, "text": "nonsense", "write": "", **WHY})
    assert SaleItem.objects.count() == 1


def test_the_empty_file_names_its_columns(operator: Client) -> None:
    answer = operator.get(reverse("desk_sale_template"))
    assert b"".join(answer).decode("utf-8-sig") == "sku,price,units,price_again\r\n"


def test_who_may_only_look_can_do_nothing() -> None:
    shop = open_sale()
    auditor = browser("view_flashsale")
    seen = words(auditor.get(page("desk_sale", shop)))
    assert " …</a>" not in seen
    for name in ("desk_sale_preheat", "desk_sale_import", "desk_sale_window"):
        assert auditor.get(page(name, shop)).status_code == 403
        assert auditor.post(page(name, shop)).status_code == 403
    assert auditor.post(reverse("desk_sale_new"), form(shop)).status_code == 403
    for name in ("pause", "end", "withdraw"):
        assert auditor.post(page("desk_sale_action", shop, name), {"reason": "because"}).status_code == 403
    assert browser().get(page("desk_sale", shop)).status_code == 403
    assert "-" in buy(make_ticket(shop))


@pytest.mark.parametrize("phase", SalePhase)
def test_a_sale_has_one_word(phase: SalePhase) -> None:
    pausable = phase in {SalePhase.PREHEATED, SalePhase.LIVE}
    assert word_of_phase(phase=phase, items=2, items_paused=1) == SaleWord(phase.value)
    assert word_of_phase(phase=phase, items=0, items_paused=0) == SaleWord(phase.value)
    assert word_of_phase(phase=phase, items=2, items_paused=2) == (
        SaleWord.PAUSED if pausable else SaleWord(phase.value)
    )
