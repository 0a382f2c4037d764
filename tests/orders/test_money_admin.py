"""The operator's pages of money: refund or honour, by whoever may, and nothing edited by hand."""

from decimal import Decimal

import pytest
from django.contrib.auth.models import Permission, User
from django.db import models
from django.test import Client
from django.urls import reverse

from orders.models import Honour, Order, Payment, PaymentAttempt, Refund
from orders.providers import RefundAnswer, RefundStanding
from orders.services.sending import end_refund
from tests.support.desk import cells
from tests.support.forms import fields_of
from tests.support.payments import PRICE, begun_order, paid_order, unwelcome_payment
from tests.support.rows import NOW

FAILED = RefundAnswer(standing=RefundStanding.FAILED, failure="the account is closed")


def staff(*codenames: str) -> Client:
    """The browser of an employee with some permissions."""
    user = User.objects.create_user(f"employee-{User.objects.count()}", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def operator() -> Client:
    """The browser of somebody who may look, refund and honour."""
    return staff("view_payment", "view_refund", "refund_payment", "honour_payment")


def page(model: type[models.Model], action: str, *args: object) -> str:
    return reverse(f"admin:orders_{model._meta.model_name}_{action}", args=args)


def act(client: Client, action: str, row: models.Model, reason: str = "he has asked") -> list[tuple[str, str]]:
    data = {"action": action, "_selected_action": [row.pk], "reason": reason}
    response = client.post(page(type(row), "changelist"), data, follow=True)
    assert response.status_code == 200
    return [(message.level_tag, message.message) for message in response.context["messages"]]


def form_of(payment: Payment) -> str:
    return reverse("admin:orders_payment_refund", args=[payment.pk])


def test_the_list_of_what_is_due_offers_both_choices(operator: Client) -> None:
    payment = unwelcome_payment()
    html = operator.get(page(Payment, "changelist") + "?state__exact=REFUND_DUE").content.decode()
    assert payment.provider_reference in html
    assert "the order was closed" in html
    assert 'value="refund_in_full"' in html
    assert 'value="honour"' in html


def test_unwelcome_money_is_refunded_by_an_action_once(operator: Client) -> None:
    payment = unwelcome_payment()
    assert act(operator, "refund_in_full", payment) == [("success", f"{payment}: done")]
    refund = Refund.objects.get()
    assert (refund.amount, refund.reason, refund.units_to) == (PRICE, "UNWELCOME", "NOWHERE")
    assert refund.requested_by is not None
    ((kind, words),) = act(operator, "refund_in_full", payment)
    assert (kind, "at most 0.00 can be refunded" in words) == ("error", True)
    assert Refund.objects.count() == 1


def test_what_pays_an_order_is_not_refunded_by_the_dozen(operator: Client) -> None:
    _, payment = paid_order()
    ((kind, words),) = act(operator, "refund_in_full", payment)
    assert (kind, "refund it on its own page" in words) == ("error", True)
    assert not Refund.objects.exists()


def test_honouring_is_asked_for_once(operator: Client) -> None:
    payment = unwelcome_payment()
    assert act(operator, "honour", payment) == [("success", f"{payment}: done")]
    assert Honour.objects.get().requested_by is not None
    assert act(operator, "honour", payment)[0][0] == "error"
    assert act(operator, "refund_in_full", payment)[0][0] == "error"


def test_the_form_asks_how_much_why_and_where_the_units_go(operator: Client) -> None:
    order, payment = paid_order()
    assert form_of(payment) in operator.get(page(Payment, "change", payment.pk)).content.decode()
    fields = fields_of(operator.get(form_of(payment)).content)
    assert fields["amount"] == "1499.00"
    answer = operator.post(form_of(payment), fields | {"reason": "DEFECTIVE", "note": "broken glass"})
    assert (answer.status_code, answer["Location"]) == (302, page(Payment, "change", payment.pk))
    refund = Refund.objects.get()
    assert (refund.amount, refund.reason, refund.units_to, refund.note) == (
        PRICE,
        "DEFECTIVE",
        "WRITTEN_OFF",
        "broken glass",
    )
    order.refresh_from_db()
    assert order.units_to == "WRITTEN_OFF"


def test_the_form_takes_a_part_and_says_why_not(operator: Client) -> None:
    _, payment = paid_order()
    part = {"amount": "100", "reason": "WITHDRAWN", "units_to": "", "note": "kept a part"}
    operator.post(form_of(payment), part)
    assert (Refund.objects.get().amount, Refund.objects.get().units_to) == (Decimal(100), "NOWHERE")
    answer = operator.post(form_of(payment), part | {"units_to": "ON_SALE"})
    assert answer.status_code == 200
    assert "units come back only with the whole amount" in answer.content.decode()
    for bad in ({"note": " "}, {"amount": "0"}, {"amount": "x"}, {"reason": ""}, {"units_to": "MARS"}):
        assert operator.post(form_of(payment), part | bad).status_code == 200
    assert Refund.objects.count() == 1


def test_a_failed_refund_is_asked_for_again_once(operator: Client) -> None:
    _, payment = paid_order()
    operator.post(form_of(payment), {"amount": "100", "reason": "GOODWILL", "note": "for the wait"}, follow=True)
    refund = Refund.objects.get()
    assert act(operator, "ask_again", refund) == []
    end_refund(refund_id=refund.pk, answer=FAILED, now=NOW)
    assert act(operator, "ask_again", refund) == [("success", f"{refund.reference}: done")]
    assert act(operator, "ask_again", refund)[0][0] == "error"
    assert Refund.objects.latest("pk").replaces_id == refund.pk
    assert Refund.objects.count() == 2


def test_who_may_only_look_cannot_act() -> None:
    viewer = staff("view_payment", "view_refund")
    payment = unwelcome_payment()
    for action in ("refund_in_full", "honour"):
        data = {"action": action, "_selected_action": [payment.pk]}
        assert viewer.post(page(Payment, "changelist"), data).status_code == 200
    assert viewer.get(form_of(payment)).status_code == 403
    assert viewer.post(form_of(payment), {"amount": "1", "reason": "GOODWILL"}).status_code == 403
    assert form_of(payment) not in viewer.get(page(Payment, "change", payment.pk)).content.decode()
    assert not Refund.objects.exists()
    assert not Honour.objects.exists()


def test_who_may_refund_and_not_look_is_refused_too() -> None:
    client = staff("refund_payment", "honour_payment")
    payment = unwelcome_payment()
    assert client.get(form_of(payment)).status_code == 403
    assert client.get(page(Payment, "changelist")).status_code == 403


@pytest.mark.parametrize("model", [Payment, Refund, Honour, PaymentAttempt, Order])
def test_money_is_never_edited_by_hand(model: type[models.Model]) -> None:
    client = Client()
    client.force_login(User.objects.create_superuser("operator"))
    begun_order()
    payment = unwelcome_payment()
    act(client, "refund_in_full", payment)
    Honour.objects.create(payment=payment, state="REFUSED", created_at=NOW, updated_at=NOW)
    row = model._default_manager.latest("pk")
    assert client.get(page(model, "change", row.pk)).status_code == 200
    before = list(model._default_manager.values())
    assert client.get(page(model, "add")).status_code == 403
    assert client.post(page(model, "change", row.pk), {"state": "DONE"}).status_code == 403
    assert client.post(page(model, "delete", row.pk), {"post": "yes"}).status_code == 403
    assert list(model._default_manager.values()) == before


def test_a_payment_that_is_not_there(operator: Client) -> None:
    assert operator.get(reverse("admin:orders_payment_refund", args=[10**9])).status_code == 404


def test_what_is_due_is_told_in_words_with_the_last_refusal_and_one_button(operator: Client) -> None:
    payment = unwelcome_payment()
    Honour.objects.create(payment=payment, state="REFUSED", reason="sold_out", created_at=NOW, updated_at=NOW)
    html = operator.get(page(Payment, "changelist") + "?state__exact=REFUND_DUE").content.decode()
    (words,) = cells(html, "what_happened")
    assert words.startswith("The money came after the order was closed.")
    assert words.endswith("It was to be honoured, and could not be: no unit is left.")
    assert cells(html, "remedy") == ["Refund or honour"]
    assert form_of(payment) in html
    _order, paid = paid_order()
    html = operator.get(page(Payment, "changelist") + "?state__exact=ACCEPTED").content.decode()
    assert (cells(html, "how_far"), cells(html, "remedy"), paid.problem) == (["pays its order"], ["–"], "")


def test_money_is_honoured_from_the_refund_s_page_by_whoever_may(operator: Client) -> None:
    payment = unwelcome_payment()
    html = operator.get(form_of(payment)).content.decode()
    assert 'name="honour"' in html
    clerk = staff("view_payment", "refund_payment")
    assert 'name="honour"' not in clerk.get(form_of(payment)).content.decode()
    assert clerk.post(form_of(payment), {"honour": "1"}).status_code == 200
    assert not Honour.objects.exists()
    assert operator.post(form_of(payment), {"honour": "1"}).status_code == 200
    assert not Honour.objects.exists()
    assert operator.post(form_of(payment), {"honour": "1", "reason": "our mistake"}).status_code == 302
    assert Honour.objects.get().payment_id == payment.pk
    assert 'name="honour"' not in operator.get(form_of(payment)).content.decode()
