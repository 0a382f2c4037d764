"""The inbox: what waits for me and what I asked for, over all kinds of changes, with what was found after each."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from inventory.changes import ManualChange, submit
from inventory.models import StockAdjustment
from seckill.change_tables import ItemAdjustment, WindowChange
from seckill.followup import follow_up
from seckill.inbox import all_requests, own_requests, waiting_count, waiting_requests
from seckill.models import ItemBucket, ReconciliationRun
from seckill.reconciliation import reconcile_bucket
from tests.support.people import person
from tests.support.shop import Shop, open_sale
from tests.support.threads import run_together

INBOX = reverse("desk_inbox")
TABLES = ("itemadjustment", "windowchange", "stockadjustment")


def clerk() -> User:
    return person(*(f"add_{table}" for table in TABLES))


def manager() -> User:
    return person(*(f"approve_{table}" for table in TABLES))


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def page_of(user: User, chosen: str = "waiting") -> str:
    answer = browser(user).get(INBOX, {"list": chosen})
    assert answer.status_code == 200
    return answer.content.decode()


def more(shop: Shop, by: User, units: int = 5) -> ItemAdjustment:
    wish = ItemAdjustment(item=shop.item, delta=units, counterpart="OUTSIDE", reason="a box was found")
    return submit(change=wish, by=by, now=timezone.now())


def one_of_each(shop: Shop, by: User) -> list[ManualChange]:
    window = {"opens_at": shop.sale.opens_at, "closes_at": shop.sale.closes_at + timedelta(hours=1)}
    later = WindowChange(sale=shop.sale, reason="longer", **window)
    counted = StockAdjustment(sku=shop.item.sku, delta=2, reason="counted")
    return [
        more(shop, by),
        submit(change=later, by=by, now=timezone.now()),
        submit(change=counted, by=by, now=timezone.now()),
    ]


def decide(user: User, change: Any, decision: str = "approve") -> Any:
    opts = change._meta
    address = reverse(f"admin:{opts.app_label}_{opts.model_name}_decide", args=[change.pk])
    return browser(user).post(address, {"decision": decision, "reason": "seen"}, follow=True)


def told(answer: Any) -> list[str]:
    return [str(message) for message in answer.context["messages"]]


def test_each_sees_his_own_side_of_every_kind() -> None:
    shop = open_sale()
    asker, decider = clerk(), manager()
    changes = one_of_each(shop, asker)
    assert [entry.change for entry in waiting_requests(by=decider)] == changes
    assert [entry.change for entry in own_requests(by=asker)] == changes[::-1]
    assert waiting_requests(by=asker) == own_requests(by=decider) == []
    assert (waiting_count(by=decider), waiting_count(by=asker)) == (3, 0)
    html = page_of(decider)
    for change in changes:
        assert f"/{change._meta.model_name}/{change.pk}/decide/" in html
    assert "/decide/" not in page_of(asker, "mine")


def test_approved_in_the_inbox_it_shows_what_was_found_after_it() -> None:
    shop = open_sale(units=10)
    asker, decider = clerk(), manager()
    change = more(shop, asker)
    answer = decide(decider, change)
    assert answer.redirect_chain == [(INBOX, 302)]
    assert told(answer) == [f"{change}: applied"]
    assert ItemBucket.objects.get().allocated == 15
    assert "not made yet" in page_of(asker, "mine")
    follow_up(clock=timezone.now)
    reconcile_bucket(bucket=shop.bucket, clock=timezone.now)
    (entry,) = own_requests(by=asker)
    assert entry.finding is not None
    assert (entry.finding.is_right, entry.finding.run) == (True, ReconciliationRun.objects.get())
    html = page_of(asker, "mine")
    assert reverse("admin:seckill_reconciliationrun_change", args=[ReconciliationRun.objects.get().pk]) in html
    assert "seen" in html


def test_windows_and_the_warehouse_have_their_findings_too() -> None:
    shop = open_sale()
    asker, decider = clerk(), manager()
    _units, window, stock = one_of_each(shop, asker)
    decide(decider, window)
    decide(decider, stock)
    reconcile_bucket(bucket=shop.bucket, clock=timezone.now)
    found = {type(entry.change): entry.finding for entry in own_requests(by=asker)}
    assert found[ItemAdjustment] is None
    assert found[WindowChange].run == ReconciliationRun.objects.get()  # type: ignore[union-attr]
    assert found[StockAdjustment].is_right  # type: ignore[union-attr]


def test_of_two_who_decide_at_once_one_does_and_the_other_is_told_who_was_quicker() -> None:
    shop = open_sale(units=10)
    change = more(shop, clerk())
    first, second = manager(), manager()
    # The pages themselves: what the client notes of templates is noted for all threads alike.
    pages = run_together(lambda who: decide(who, change).content.decode(), [first, second])
    change.refresh_from_db()
    assert change.decided_by is not None
    assert ItemBucket.objects.get().allocated == 15
    assert sorted(f"{change.decided_by} was quicker" in page for page in pages) == [False, True]
    assert sorted(f"{change}: applied" in page for page in pages) == [False, True]


def test_whoever_comes_late_is_told_so_and_changes_nothing() -> None:
    shop = open_sale(units=10)
    change = more(shop, clerk())
    first, second = manager(), manager()
    decide(first, change, "reject")
    (words,) = told(decide(second, change))
    assert words.startswith(f"{change}: {first} was quicker")
    assert "rejected" in words
    assert ItemBucket.objects.get().allocated == 10


def test_one_s_own_request_has_no_button_and_a_crafted_answer_is_refused() -> None:
    shop = open_sale(units=10)
    both = person(*(f"{action}_itemadjustment" for action in ("add", "approve")))
    change = more(shop, both)
    assert waiting_requests(by=both) == []
    assert "/decide/" not in page_of(both, "mine") + page_of(both, "all")
    assert decide(both, change).status_code == 403
    change.refresh_from_db()
    assert change.state == "REQUESTED"


def test_an_auditor_sees_all_and_decides_nothing() -> None:
    shop = open_sale()
    change = more(shop, clerk())
    auditor = person("view_itemadjustment")
    assert [entry.change for entry in all_requests(by=auditor)] == [change]
    html = page_of(auditor, "all")
    assert str(change) in html
    assert "/decide/" not in html
    assert "/add/" not in html
    assert decide(auditor, change).status_code == 403


@pytest.mark.parametrize("chosen", ["waiting", "mine", "all", "nonsense"])
def test_who_has_nothing_to_do_with_changes_is_refused(chosen: str) -> None:
    assert browser(person("view_order")).get(INBOX, {"list": chosen}).status_code == 403
    assert Client().get(INBOX).status_code == 302


def test_many_requests_cost_no_more_than_twenty_statements_and_are_counted() -> None:
    shop = open_sale()
    asker, decider = clerk(), manager()
    for _ in range(20):
        one_of_each(shop, asker)
    assert len(waiting_requests(by=decider)) == 50
    assert waiting_count(by=decider) == 60
    client = browser(asker)
    with CaptureQueriesContext(connection) as asked:
        assert client.get(INBOX, {"list": "mine"}).status_code == 200
    assert len(asked) <= 20
