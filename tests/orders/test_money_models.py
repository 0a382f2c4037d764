"""The rules of money hold in the database itself, whoever writes past the services."""

from typing import Any

import pytest
from django.db import models

from orders.models import (
    Honour,
    Payment,
    PaymentAttempt,
    Refund,
    SandboxCharge,
    SandboxNotice,
    SandboxPayment,
    SandboxRefund,
)
from tests.support.payments import begun_order, money_for, paid_order, unwelcome_payment
from tests.support.rows import CHECK_VIOLATED, DUPLICATE, NOW, assert_refused, check_names, error_code

TABLES = (Honour, Payment, PaymentAttempt, Refund, SandboxCharge, SandboxNotice, SandboxPayment, SandboxRefund)


def make_accepted() -> None:
    paid_order()


def make_unwelcome() -> None:
    unwelcome_payment()


def make_attempt() -> None:
    begun_order()


def make_refund() -> None:
    _, payment = paid_order()
    Refund.objects.create(
        payment=payment,
        provider="sandbox",
        reference="r-1",
        amount=1,
        reason="GOODWILL",
        units_to="NOWHERE",
        due_at=NOW,
        created_at=NOW,
        updated_at=NOW,
    )


def make_honour() -> None:
    payment = unwelcome_payment()
    Honour.objects.create(payment=payment, open_key=payment.pk, created_at=NOW, updated_at=NOW)


# what is made, its table, the rule, what somebody tries to write
BAD_WRITES: list[tuple[Any, type[models.Model], str, dict[str, Any]]] = [
    (make_attempt, PaymentAttempt, "attempt_state_known", {"state": "MAYBE", "ask_at": None}),
    (make_attempt, PaymentAttempt, "attempt_amount_positive", {"amount": 0}),
    (make_attempt, PaymentAttempt, "attempt_asked_while_open", {"ask_at": None}),
    (make_attempt, PaymentAttempt, "attempt_asked_while_open", {"state": "CLOSED"}),
    (make_unwelcome, Payment, "payment_amount_positive", {"amount": 0}),
    (make_unwelcome, Payment, "payment_refunds_at_most_amount", {"refunding": "1499.01"}),
    (make_unwelcome, Payment, "payment_refunds_at_most_amount", {"refunding": "-0.01"}),
    (make_accepted, Payment, "payment_state_known", {"state": "GONE"}),
    (make_unwelcome, Payment, "payment_problem_known", {"problem": "BAD_WEATHER"}),
    (make_unwelcome, Payment, "payment_pays_or_has_a_problem", {"problem": "", "state": "ACCEPTED"}),
    (make_accepted, Payment, "payment_pays_or_has_a_problem", {"pays": None}),
    (make_accepted, Payment, "payment_accepted_without_problem", {"state": "REFUND_DUE"}),
    (make_unwelcome, Payment, "payment_accepted_without_problem", {"state": "ACCEPTED"}),
    (make_unwelcome, Payment, "payment_has_an_order_unless_unknown", {"order": None}),
    (make_unwelcome, Payment, "payment_has_an_order_unless_unknown", {"problem": "UNKNOWN_ORDER"}),
    (make_unwelcome, Payment, "payment_refunded_in_full", {"state": "REFUNDED", "refunding": 1}),
    (make_unwelcome, Payment, "payment_honoured_or_refunded", {"state": "HONOURING", "refunding": 1}),
    (make_refund, Refund, "refund_amount_positive", {"amount": 0}),
    (make_refund, Refund, "refund_state_known", {"state": "LOST"}),
    (make_refund, Refund, "refund_reason_known", {"reason": "WHY_NOT"}),
    (make_refund, Refund, "refund_units_to_known", {"units_to": "MARS"}),
    (make_refund, Refund, "refund_due_until_it_ends", {"due_at": None}),
    (make_refund, Refund, "refund_due_until_it_ends", {"state": "DONE"}),
    (make_honour, Honour, "honour_state_known", {"state": "MAYBE", "open_key": None}),
    (make_honour, Honour, "honour_open_until_it_ends", {"open_key": None}),
    (make_honour, Honour, "honour_open_until_it_ends", {"state": "DONE"}),
    (make_attempt, SandboxPayment, "sandbox_payment_state_known", {"state": "MAYBE"}),
]


@pytest.mark.parametrize(("make", "table", "rule", "change"), BAD_WRITES)
def test_a_row_that_breaks_a_rule_is_refused(
    make: Any, table: type[models.Model], rule: str, change: dict[str, Any]
) -> None:
    make()
    # A state the column's table does not know breaks every rule that names states; any of them may be told.
    rules = rule if "known" not in rule else ""
    assert_refused(table=table, change=change, rule=rules, codes=CHECK_VIOLATED)


def test_every_rule_has_its_case() -> None:
    assert {case[2] for case in BAD_WRITES} == check_names(*TABLES)


def test_one_payment_pays_an_order_and_money_is_known_once() -> None:
    order, _ = paid_order()
    other = unwelcome_payment()
    pays = {"order_id": order.pk, "pays_id": order.pk, "problem": "", "state": "ACCEPTED"}
    assert error_code(lambda: Payment.objects.filter(pk=other.pk).update(**pays)) == DUPLICATE
    first = Payment.objects.get(pays=order)
    reference = {"provider_reference": first.provider_reference}
    assert error_code(lambda: Payment.objects.filter(pk=other.pk).update(**reference)) == DUPLICATE
    assert money_for(begun_order()[1]).provider_reference != first.provider_reference
