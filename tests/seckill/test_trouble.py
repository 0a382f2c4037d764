"""Incidents and dead letters at the desk: what is open is shown first, the rest is found, each has its one button."""

import re

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from rest.memory import forget_everything
from seckill.advice import ADVICE
from seckill.incidents import Severity, open_incident, resolve_incident
from seckill.models import DeadLetter, Incident
from seckill.remedies import remedy_for
from seckill.settlement import settle_bucket
from seckill.waiting import COUNTED_MAX, what_waits
from tests.seckill.test_replay import park_one
from tests.support.desk import cells
from tests.support.shop import Shop, buy, make_buyers, make_ticket, open_sale

INCIDENTS = reverse("admin:seckill_incident_changelist")
LETTERS = reverse("admin:seckill_deadletter_changelist")


def happen(shop: Shop, *kinds: str, severity: Severity = Severity.CRITICAL, detail: str = "as seen") -> None:
    for kind in kinds:
        open_incident(kind=kind, severity=severity, bucket=shop.bucket, detail=detail, now=timezone.now())


def browser(*codenames: str) -> Client:
    user = User.objects.create_user(f"staff{User.objects.count()}", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client = Client()
    client.force_login(user)
    return client


def owner() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("owner"))
    return client


def page_of(client: Client, address: str, **query: str) -> str:
    return client.get(address, query).content.decode()


def test_what_is_open_is_shown_and_what_was_is_found() -> None:
    shop = open_sale()
    happen(shop, "phantom", "drift", detail="Redis sold 3 units")
    resolve_incident(kind="drift", bucket=shop.bucket, now=timezone.now())
    desk = owner()
    phantom, drift = f"{ADVICE['phantom'].what} Redis sold 3 units", f"{ADVICE['drift'].what} Redis sold 3 units"
    assert cells(page_of(desk, INCIDENTS), "what_happened") == [phantom]
    assert cells(page_of(desk, INCIDENTS, show="resolved"), "what_happened") == [drift]
    assert set(cells(page_of(desk, INCIDENTS, show="all"), "what_happened")) == {phantom, drift}
    assert cells(page_of(desk, INCIDENTS, q="counted differently"), "what_happened") == [drift]
    assert set(cells(page_of(desk, INCIDENTS, q="3 units"), "what_happened")) == {phantom, drift}
    assert set(cells(page_of(desk, INCIDENTS, q=shop.sale.name), "ended")) == {"open", "resolved"}
    assert cells(page_of(desk, INCIDENTS, q="nothing of the kind"), "what_happened") == []


def test_every_kind_has_a_button_that_leads_to_a_page() -> None:
    shop = open_sale()
    happen(shop, *ADVICE, "never heard of", detail="order 0123456789-abc is another")
    desk = owner()
    for incident in Incident.objects.select_related("pool"):
        remedy = remedy_for(incident=incident, item_id=shop.item.pk)
        assert desk.get(remedy.address).status_code == 200, incident.kind
        assert str(remedy.label)
        assert remedy.address in page_of(desk, reverse("admin:seckill_incident_change", args=[incident.pk])).replace(
            "&amp;", "&"
        )


def test_a_long_list_costs_no_more_statements_than_a_short_one() -> None:
    desk, shops = owner(), [open_sale() for _ in range(3)]
    happen(shops[0], "phantom")
    with CaptureQueriesContext(
        connection,
    ) as short:
        page_of(desk, INCIDENTS)
    for shop in shops:
        happen(shop, *ADVICE)
    with CaptureQueriesContext(connection) as long:
        assert len(cells(page_of(desk, INCIDENTS), "ended")) == 50
    assert len(long) <= len(short) <= 20


def test_the_side_bar_counts_what_waits_and_remembers_it() -> None:
    shop = open_sale()
    desk = owner()
    happen(shop, "phantom")
    assert (what_waits().incidents, what_waits().is_critical, what_waits().letters) == (1, True, 0)
    happen(shop, "drift", severity=Severity.WARNING)
    assert what_waits().incidents == 1
    forget_everything()
    assert what_waits().incidents == 2
    assert ">2<" in "".join(page_of(desk, INCIDENTS).split())


def test_more_than_can_be_counted_are_that_many() -> None:
    shop = open_sale()
    Incident.objects.bulk_create(
        Incident(
            kind=f"kind{number}",
            severity="WARNING",
            pool=shop.pool,
            bucket_no=0,
            detail="x",
            open_key=f"{number}",
            opened_at=timezone.now(),
            last_seen_at=timezone.now(),
        )
        for number in range(COUNTED_MAX + 5)
    )
    assert (what_waits().incidents, what_waits().is_critical) == (COUNTED_MAX, False)
    assert f"{COUNTED_MAX}+" in page_of(owner(), INCIDENTS)


def test_whoever_may_only_look_decides_nothing() -> None:
    shop = open_sale(units=3)
    letter = park_one(shop, make_buyers(1)[0])
    address = reverse("admin:seckill_deadletter_decide", args=[letter.pk])
    assert browser("view_deadletter").get(address).status_code == 403
    answer = browser("view_deadletter").post(address, {"decision": "REFUSE", "reason": "crafted"})
    assert answer.status_code == 403
    letter.refresh_from_db()
    assert letter.decision == ""


@pytest.mark.parametrize("decision", ["REPLAY", "REFUSE"])
def test_a_letter_is_decided_on_its_page(decision: str) -> None:
    shop = open_sale(units=3)
    letter = park_one(shop, make_buyers(1)[0])
    desk = browser("view_deadletter", "decide_deadletter")
    address = reverse("admin:seckill_deadletter_decide", args=[letter.pk])
    assert address in page_of(desk, LETTERS)
    assert letter.fields["order"] in page_of(desk, address)
    assert desk.post(address, {"decision": decision, "reason": ""}).status_code == 200
    assert desk.post(address, {"decision": decision, "reason": "the buyer has called"}).status_code == 302
    letter.refresh_from_db()
    assert (letter.decision, letter.decision_reason) == (decision, "the buyer has called")
    assert cells(page_of(desk, LETTERS), "how_far") == []
    assert len(cells(page_of(desk, LETTERS, show="decided"), "how_far")) == 1
    told = [
        str(message)
        for message in desk.post(address, {"decision": "REFUSE", "reason": "x"}, follow=True).context["messages"]
    ]
    assert told == [f"{letter}: it was decided already: {letter.get_decision_display()}"]


def test_what_cannot_be_replayed_is_only_refused() -> None:
    shop = open_sale(units=3)
    letter = DeadLetter.objects.create(
        pool=shop.pool,
        bucket_no=0,
        epoch=1,
        stream_id="1-1",
        fields={},
        error="x",
        created_at=timezone.now(),
    )
    desk = browser("view_deadletter", "decide_deadletter")
    address = reverse("admin:seckill_deadletter_decide", args=[letter.pk])
    html = page_of(desk, address)
    assert "it cannot be read" in html
    assert 'value="REPLAY"' not in html
    assert desk.post(address, {"decision": "REPLAY", "reason": "crafted"}).status_code == 200
    letter.refresh_from_db()
    assert letter.decision == ""


@pytest.mark.parametrize("kind", ["order_differs", "row_refused"])
def test_an_incident_about_an_order_leads_to_what_became_of_it(kind: str) -> None:
    shop = open_sale()
    number = buy(make_ticket(shop))
    settle_bucket(bucket=shop.bucket, clock=timezone.now)
    happen(shop, kind, detail=f"Redis and MySQL differ about order {number}")
    client = owner()
    (link,) = re.findall(r'class="desk-button" href="([^"]+)">What became of it<', page_of(client, INCIDENTS))
    assert link == f"{reverse('desk_explain')}?q={number}"
    told = client.get(link).content.decode()
    assert number in told
    assert "Nothing here answers to" not in told


def test_a_letter_leads_to_its_order_and_its_buyer() -> None:
    shop = open_sale(units=3)
    (buyer,) = make_buyers(1)
    letter = park_one(shop, buyer)
    client, explain = owner(), reverse("desk_explain")
    change = reverse("admin:seckill_deadletter_change", args=[letter.pk])
    for page in (LETTERS, change, reverse("admin:seckill_deadletter_decide", args=[letter.pk])):
        html = page_of(client, page)
        for query in (letter.fields["order"], buyer.pk):
            assert f'href="{explain}?q={query}"' in html, page
    for query in (letter.fields["order"], buyer.pk):
        assert letter.fields["order"] in page_of(client, explain, q=str(query))
    DeadLetter.objects.update(fields={"junk": "x"})
    assert cells(page_of(client, LETTERS), "story") == ["–"]
