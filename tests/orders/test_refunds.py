"""Refunds: never more than came, units back once, and done once whatever is repeated or lost."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db.models import F
from django.utils import timezone

from orders.conf import LIMITS
from orders.errors import RefundRefused
from orders.models import Order, OrderEvent, Payment, Refund, SandboxRefund
from orders.providers import Paid, RefundAnswer, RefundStanding
from orders.providers.sandbox.provider import SandboxProvider
from orders.services.honours import request_honour
from orders.services.refunding import RefundRequest, default_units_to, request_refund
from orders.services.sending import claim_due_refunds, end_refund, push_refund
from orders.states import PaymentState, RefundedUnitsTo, RefundReason, RefundState
from tests.support.payments import PRICE, notice_of, notify, paid_order, silent, unwelcome_payment
from tests.support.rows import NOW
from tests.support.threads import run_together

DONE = RefundAnswer(standing=RefundStanding.DONE)
PENDING = RefundAnswer(standing=RefundStanding.PENDING)
FAILED = RefundAnswer(standing=RefundStanding.FAILED, failure="the account is closed")


def ask(
    payment: Payment,
    amount: Decimal = PRICE,
    units_to: RefundedUnitsTo = RefundedUnitsTo.NOWHERE,
    *,
    replaces: Refund | None = None,
) -> bool:
    """Ask for a refund; tell whether it was written."""
    request = RefundRequest(
        payment_id=payment.pk,
        amount=amount,
        reason=RefundReason.WITHDRAWN,
        units_to=units_to,
        replaces_id=replaces.pk if replaces else None,
    )
    try:
        request_refund(request=request, now=NOW)
    except RefundRefused:
        return False
    return True


def push(refund: Refund | None = None) -> str:
    """Tell the provider, or ask it; return where the refund stands then."""
    chosen = refund or Refund.objects.get()
    push_refund(refund_id=chosen.pk, clock=timezone.now)
    return Refund.objects.get(pk=chosen.pk).state


def settle_at_bank() -> None:
    SandboxRefund.objects.update(settles_at=timezone.now() - timedelta(seconds=1))


def test_a_whole_refund_gives_the_units_up_in_the_same_breath() -> None:
    order, payment = paid_order()
    assert ask(payment, units_to=RefundedUnitsTo.WAREHOUSE)
    order.refresh_from_db()
    assert (order.state, order.closed_at, order.units_due_at, order.units_to) == ("PAID", NOW, NOW, "WAREHOUSE")
    refund = Refund.objects.get()
    event = OrderEvent.objects.latest("pk")
    assert (event.from_state, event.to_state) == ("PAID", "PAID")
    assert event.reason == f"units given back with refund {refund.reference}"
    assert (refund.state, refund.amount, refund.due_at) == ("REQUESTED", PRICE, NOW)


def test_a_part_or_a_gift_leaves_the_units_where_they_are() -> None:
    order, payment = paid_order()
    assert not ask(payment, Decimal(100), RefundedUnitsTo.ON_SALE)
    assert ask(payment, Decimal(100))
    assert ask(payment, PRICE - 100)
    order.refresh_from_db()
    assert (order.closed_at, order.units_due_at) == (None, None)
    assert Payment.objects.get().refunding == PRICE


def test_the_last_part_may_bring_the_units_back() -> None:
    order, payment = paid_order()
    assert ask(payment, Decimal(100))
    assert not ask(payment, Decimal(100), RefundedUnitsTo.ON_SALE)
    assert ask(payment, PRICE - 100, RefundedUnitsTo.ON_SALE)
    order.refresh_from_db()
    assert order.units_due_at == NOW


@pytest.mark.parametrize("amount", [Decimal(0), Decimal(-1), PRICE + Decimal("0.01")])
def test_nothing_and_more_than_came_are_refused(amount: Decimal) -> None:
    _, payment = paid_order()
    before = Payment.objects.values().get()
    assert not ask(payment, amount)
    assert Payment.objects.values().get() == before
    assert not Refund.objects.exists()


def test_ten_refunds_at_once_are_one() -> None:
    """CASES 3: one refund, the units once, one event."""
    _, payment = paid_order()
    answers = run_together(lambda _: ask(payment, units_to=RefundedUnitsTo.ON_SALE), range(10))
    assert sorted(answers) == [False] * 9 + [True]
    assert (Refund.objects.count(), Payment.objects.get().refunding) == (1, PRICE)
    assert OrderEvent.objects.filter(from_state="PAID").count() == 1


def test_control_refunds_that_read_then_write() -> None:
    """The control: each of ten saw that nothing was refunded yet; the constraint alone stops the eleventh."""
    _, payment = paid_order()
    assert payment.amount - payment.refunding == PRICE
    part = PRICE / 10
    for _ in range(10):
        Payment.objects.filter(pk=payment.pk).update(refunding=F("refunding") + part)
    with pytest.raises(Exception, match="payment_refunds_at_most_amount"):
        Payment.objects.filter(pk=payment.pk).update(refunding=F("refunding") + part)


def test_parts_at_once_never_sum_up_to_more_than_came() -> None:
    _, payment = paid_order()
    answers = run_together(lambda _: ask(payment, Decimal(500)), range(5))
    assert sorted(answers) == [False, False, False, True, True]
    assert Payment.objects.get().refunding == Decimal(1000)


def test_units_that_came_back_do_not_come_back_with_the_next_refund() -> None:
    """The first one failed at the bank; the second is about money alone."""
    order, payment = paid_order()
    ask(payment, units_to=RefundedUnitsTo.ON_SALE)
    first = Refund.objects.get()
    end_refund(refund_id=first.pk, answer=FAILED, now=NOW)
    Order.objects.update(units_due_at=None)
    assert not ask(payment, units_to=RefundedUnitsTo.ON_SALE)
    assert ask(payment, replaces=first)
    assert Order.objects.get().units_due_at is None
    assert order.pk


def test_a_failed_refund_is_replaced_once() -> None:
    _, payment = paid_order()
    ask(payment, Decimal(100))
    first = Refund.objects.get()
    end_refund(refund_id=first.pk, answer=FAILED, now=NOW)
    answers = run_together(lambda _: ask(payment, Decimal(100), replaces=first), range(3))
    assert sorted(answers) == [False, False, True]
    assert Payment.objects.get().refunding == Decimal(100)


def test_a_refund_is_requested_sent_and_done() -> None:
    _, payment = paid_order()
    ask(payment)
    assert push() == "SENT"
    assert Refund.objects.get().provider_reference == f"sandbox-refund-{SandboxRefund.objects.get().pk}"
    assert push() == "SENT"
    assert Payment.objects.get().state == "ACCEPTED"
    settle_at_bank()
    assert push() == "DONE"
    assert push() == "DONE"
    assert (Payment.objects.get().state, Refund.objects.get().due_at) == ("REFUNDED", None)


def test_part_refunds_make_a_refunded_payment_only_together() -> None:
    _, payment = paid_order()
    for part in (Decimal(100), PRICE - 100):
        ask(payment, part)
    first, second = Refund.objects.order_by("pk")
    end_refund(refund_id=first.pk, answer=DONE, now=NOW)
    assert Payment.objects.get().state == "ACCEPTED"
    end_refund(refund_id=second.pk, answer=DONE, now=NOW)
    assert Payment.objects.get().state == "REFUNDED"


@pytest.mark.parametrize(("amount", "state"), [("1.98", "FAILED"), ("1.99", "SENT")])
def test_a_refund_the_provider_refuses_or_its_bank_fails(
    amount: str, state: str, caplog: pytest.LogCaptureFixture
) -> None:
    _, payment = paid_order()
    ask(payment, Decimal(amount))
    assert push() == state
    if state == "SENT":
        settle_at_bank()
        assert push() == "FAILED"
    refund = Refund.objects.get()
    assert (refund.due_at, refund.failure != "") == (None, True)
    assert Payment.objects.get().refunding == 0
    assert Payment.objects.get().state == "ACCEPTED"
    assert "has failed" in caplog.text


def test_a_lost_answer_is_asked_for_again_and_refunds_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Law 5: the provider heard it, the shop did not hear back; the same reference is the same refund."""
    _, payment = paid_order()
    ask(payment)
    refund = SandboxProvider.refund

    def lose(self: SandboxProvider, *, wish: Any) -> Any:
        refund(self, wish=wish)
        return silent()

    with monkeypatch.context() as patch:
        patch.setattr(SandboxProvider, "refund", lose)
        assert push() == "REQUESTED"
    assert push() == "SENT"
    assert SandboxRefund.objects.count() == 1


@pytest.mark.parametrize(
    "answers", [[DONE, DONE], [DONE, FAILED], [DONE, RefundAnswer(standing=RefundStanding.PENDING)]]
)
def test_what_is_done_stays_done_whatever_is_told_later(answers: list[RefundAnswer]) -> None:
    _, payment = paid_order()
    ask(payment)
    for answer in answers:
        end_refund(refund_id=Refund.objects.get().pk, answer=answer, now=NOW)
    assert (Refund.objects.get().state, Payment.objects.get().state) == ("DONE", "REFUNDED")
    assert Payment.objects.get().refunding == PRICE


def test_a_failure_told_twice_gives_the_amount_free_once() -> None:
    _, payment = paid_order()
    ask(payment)
    run_together(lambda _: end_refund(refund_id=Refund.objects.get().pk, answer=FAILED, now=NOW), range(4))
    assert Payment.objects.get().refunding == 0


def test_an_answer_that_says_nothing_changes_nothing() -> None:
    _, payment = paid_order()
    ask(payment)
    end_refund(refund_id=Refund.objects.get().pk, answer=RefundAnswer(standing=RefundStanding.UNKNOWN), now=NOW)
    assert Refund.objects.get().state == "REQUESTED"


def test_a_notification_ends_a_refund_too() -> None:
    _, payment = paid_order()
    ask(payment)
    reference = Refund.objects.get().reference
    money = notice_of(_money(payment), kind="refund", refund=reference, outcome="done")
    assert notify(money) == (200, "OK")
    assert Refund.objects.get().state == "DONE"
    assert notify(notice_of(_money(payment), kind="refund", refund="R-none", outcome="done")) == (200, "OK")


def _money(payment: Payment) -> Paid:
    return Paid(provider_reference="p", order_reference=payment.order_reference, amount=payment.amount)


def test_a_due_refund_is_given_to_one_of_ten_workers_and_comes_again_later() -> None:
    _, payment = paid_order()
    ask(payment)
    assert sum(len(claimed) for claimed in run_together(lambda _: claim_due_refunds(now=NOW), range(10))) == 1
    assert claim_due_refunds(now=NOW) == []
    assert len(claim_due_refunds(now=NOW + LIMITS.refund_interval)) == 1


def test_unwelcome_money_goes_back_and_is_then_refunded() -> None:
    payment = unwelcome_payment()
    assert not ask(payment, units_to=RefundedUnitsTo.ON_SALE)
    assert ask(payment)
    end_refund(refund_id=Refund.objects.get().pk, answer=DONE, now=NOW)
    assert Payment.objects.get().state == "REFUNDED"


def test_refund_and_honour_at_once_are_one_of_them() -> None:
    """Money is not given back and used."""
    for _ in range(3):
        payment = unwelcome_payment()

        def honour(payment: Payment = payment) -> bool:
            try:
                request_honour(payment_id=payment.pk, actor_id=None, now=NOW)
            except Exception:  # noqa: BLE001  whichever refusal
                return False
            return True

        doors: list[Callable[[], bool]] = [honour, lambda payment=payment: ask(payment)]  # type: ignore[misc]
        assert sorted(run_together(lambda go: go(), doors)) == [False, True]
        payment.refresh_from_db()
        assert (payment.state == PaymentState.HONOURING) == (payment.refunding == 0)


def test_the_reason_decides_where_units_go_unless_it_is_a_part() -> None:
    _, payment = paid_order()
    usual = {r: default_units_to(payment=payment, amount=PRICE, reason=r) for r in RefundReason}
    assert usual[RefundReason.DEFECTIVE] is RefundedUnitsTo.WRITTEN_OFF
    assert usual[RefundReason.WITHDRAWN] is RefundedUnitsTo.ON_SALE
    part = default_units_to(payment=payment, amount=Decimal(1), reason=RefundReason.DEFECTIVE)
    assert part is RefundedUnitsTo.NOWHERE
    unwelcome = unwelcome_payment()
    assert default_units_to(payment=unwelcome, amount=PRICE, reason=RefundReason.DEFECTIVE) is RefundedUnitsTo.NOWHERE


def test_all_live_states_count() -> None:
    """Requested, sent and done refunds hold their amount; a failed one does not."""
    assert {state for state in RefundState if state is not RefundState.FAILED} == {"REQUESTED", "SENT", "DONE"}
