"""The pages of changes by hand: ask, inbox, approve or reject on a page of its own with a reason."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from inventory.models import Sku, Stock, StockAdjustment
from inventory.services import receive
from tests.support.people import person
from tests.support.rows import NOW, make_sku

LIST = "admin:inventory_stockadjustment_changelist"


@pytest.fixture
def sku() -> Sku:
    """A SKU with ten units in the warehouse."""
    made = make_sku()
    receive(sku_id=made.pk, units=10, reference="delivery", now=NOW)
    return made


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def ask(client: Client, sku: Sku, **wish: object) -> int:
    data = {"sku": sku.pk, "delta": "5", "reason": "counted again", **wish}
    return client.post(reverse("admin:inventory_stockadjustment_add"), data).status_code


def decide(client: Client, **answer: str) -> int:
    change = StockAdjustment.objects.get()
    return client.post(reverse("admin:inventory_stockadjustment_decide", args=[change.pk]), answer).status_code


def listed(client: Client, inbox: str) -> int:
    response = client.get(reverse(LIST), {"inbox": inbox})
    assert response.status_code == 200
    return int(response.context["cl"].result_count)


def state() -> tuple[str, int]:
    return StockAdjustment.objects.get().state, Stock.objects.get().on_hand


def test_asked_on_one_desk_and_approved_on_another(sku: Sku) -> None:
    clerk, manager = (
        browser(person("add_stockadjustment", "view_sku")),
        browser(person("approve_stockadjustment", "view_sku")),
    )
    assert ask(clerk, sku) == 302
    assert (listed(clerk, "mine"), listed(clerk, "waiting")) == (1, 0)
    assert (listed(manager, "mine"), listed(manager, "waiting")) == (0, 1)
    page = reverse("admin:inventory_stockadjustment_change", args=[StockAdjustment.objects.get().pk])
    assert "/decide/" in manager.get(page).content.decode()
    assert "/decide/" not in clerk.get(page).content.decode()
    confirmation = manager.get(f"{page.removesuffix('change/')}decide/")
    assert confirmation.status_code == 200
    assert "counted again" in confirmation.content.decode()
    assert state() == ("REQUESTED", 10)
    assert decide(manager, decision="approve") == 200, "no reason was given"
    assert state() == ("REQUESTED", 10)
    assert decide(manager, decision="approve", reason="seen on the shelf") == 302
    assert state() == ("APPLIED", 15)
    assert decide(manager, decision="reject", reason="again") == 302, "told that it is decided"
    assert state() == ("APPLIED", 15)
    assert "on hand 15, ledger 15" in clerk.get(page).content.decode()
    assert listed(manager, "waiting") == 0


def test_rejected(sku: Sku) -> None:
    ask(browser(person("add_stockadjustment")), sku)
    assert decide(browser(person("approve_stockadjustment")), decision="reject", reason="no") == 302
    assert state() == ("REJECTED", 10)


def test_one_s_own_request_cannot_be_approved(sku: Sku, settings: Settings) -> None:
    owner = browser(User.objects.create_superuser("owner"))
    ask(owner, sku)
    assert decide(owner, decision="approve", reason="mine") == 403
    assert state() == ("REQUESTED", 10)
    settings.ONE_PERSON_SHOP = True
    page = reverse("admin:inventory_stockadjustment_decide", args=[StockAdjustment.objects.get().pk])
    assert "your own request" in owner.get(page).content.decode()
    assert decide(owner, decision="approve", reason="mine") == 302
    assert state() == ("APPLIED", 15)


def test_who_may_not(sku: Sku) -> None:
    clerk, nobody = browser(person("add_stockadjustment")), browser(person())
    assert ask(nobody, sku) == 403
    assert ask(clerk, sku) == 302
    for client in (clerk, nobody):
        assert decide(client, decision="approve", reason="I want it") == 403
    assert nobody.get(reverse(LIST)).status_code == 403
    assert state() == ("REQUESTED", 10)


@pytest.mark.parametrize("wish", [{"delta": "0"}, {"delta": ""}, {"delta": "1.5"}, {"reason": ""}, {"delta": "9" * 10}])
def test_a_request_that_says_nothing_is_told_so(sku: Sku, wish: dict[str, str]) -> None:
    assert ask(browser(person("add_stockadjustment")), sku, **wish) == 200
    assert not StockAdjustment.objects.exists()


def test_a_form_cannot_smuggle_the_decision_in(sku: Sku) -> None:
    clerk, other = person("add_stockadjustment"), person()
    extra = {"state": "APPROVED", "decided_by": str(other.pk), "requested_by": str(other.pk), "is_by_one_person": "on"}
    assert ask(browser(clerk), sku, **extra) == 302
    change = StockAdjustment.objects.get()
    assert (change.state, change.decided_by_id, change.requested_by_id) == ("REQUESTED", None, clerk.pk)
