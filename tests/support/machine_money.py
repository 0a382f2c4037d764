"""The shop of random operations and faults, with money: paid, told of late or twice, refunded, honoured."""

from collections import defaultdict
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db.models import QuerySet
from django.utils import timezone
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from orders.errors import HonourRefused, RefundRefused
from orders.models import (
    Honour,
    Order,
    Payment,
    PaymentAttempt,
    Refund,
    SandboxCharge,
    SandboxPayment,
    SandboxRefund,
)
from orders.providers import Paid, RawNotice
from orders.providers.sandbox.provider import SandboxProvider
from orders.providers.sandbox.signing import HEADER, sign
from orders.providers.sandbox.till import Behaviour
from orders.providers.sandbox.till import pay as pay_at_the_till
from orders.services import money, refunding, request_honour, sending
from orders.services.asking import ask_about
from orders.services.notices import take_notice
from orders.services.paying import begin_payment
from orders.services.refunding import RefundRequest, request_refund
from orders.states import RefundedUnitsTo, RefundReason
from seckill import honouring
from tests.support.machine import ShopMachine, dying_at, one_of
from tests.support.payments import notice_of, silent

# The sandbox's bank fails at amounts that end in .99, and refuses those that end in .98 at once.
PARTS = [None, Decimal(100), Decimal("100.98"), Decimal("100.99")]
LATER_THAN_THE_GRACE = timedelta(minutes=3)


class MoneyMachine(ShopMachine):
    """A shop whose buyers pay at the sandbox, which tells of it when it likes."""

    has_money = False

    @rule(data=st.data(), how=st.sampled_from([None, *Behaviour]), is_told=st.booleans(), dies=st.booleans())
    def pay(self, *, data: st.DataObject, how: Behaviour | None, is_told: bool, dies: bool) -> None:
        """A buyer begins to pay, and may pay there: once, twice, or too little. The shop may hear of it."""
        order = one_of(data, self.orders().filter(state="PENDING_PAYMENT", pay_by_at__gt=timezone.now()))
        if order is None:
            return
        with dying_at(SandboxProvider, "start", dies=dies, is_done=True):
            begin_payment(number=order.number, buyer_id=order.buyer_id, provider="sandbox", now=timezone.now())
        if how is not None:
            self._pay_at_the_till(order, how)
        for charge in self._charges().filter(payment__reference__startswith=f"{order.number}.") if is_told else []:
            self._tell(charge)

    @rule(data=st.data(), is_wished=st.booleans())
    def pay_unheard(self, *, data: st.DataObject, is_wished: bool) -> None:
        """A buyer pays, the provider tells nobody until the order is closed, and somebody may want it honoured."""
        order = one_of(data, self.orders().filter(state="PENDING_PAYMENT", pay_by_at__gt=timezone.now()))
        if order is None:
            return
        begin_payment(number=order.number, buyer_id=order.buyer_id, provider="sandbox", now=timezone.now())
        self._pay_at_the_till(order, Behaviour.NEVER)
        for attempt in PaymentAttempt.objects.filter(order=order, state="OPEN"):
            self._ask(attempt, answers=False, ahead=order.pay_by_at - timezone.now() + LATER_THAN_THE_GRACE)
        for charge in self._charges().filter(payment__reference__startswith=f"{order.number}."):
            self._tell(charge)
        if is_wished:
            self.wish(data)

    @precondition(lambda self: self.has_money)
    @rule(data=st.data(), dies=st.booleans())
    def tell(self, *, data: st.DataObject, dies: bool) -> None:
        """The provider tells of money, perhaps again; whoever hears it may die before the order is paid."""
        charge = one_of(data, self._charges())
        if charge is not None:
            with dying_at(money, "_settle_attempt", dies=dies):
                self._tell(charge)

    @rule(data=st.data(), answers=st.booleans(), is_late=st.booleans())
    def ask(self, *, data: st.DataObject, answers: bool, is_late: bool) -> None:
        """The provider is asked about a begun payment, in time or not, and answers or not."""
        attempt = one_of(data, self._attempts().filter(state="OPEN"))
        if attempt is not None:
            self._ask(attempt, answers=answers, ahead=timedelta(hours=1) if is_late else timedelta())

    @precondition(lambda self: self.has_money)
    @rule(data=st.data(), amount=st.sampled_from(PARTS), units_to=st.sampled_from(RefundedUnitsTo), dies=st.booleans())
    def refund(self, *, data: st.DataObject, amount: Decimal | None, units_to: RefundedUnitsTo, dies: bool) -> None:
        """Somebody gives money back: a part, or all that is left of it with the units; he may die at it."""
        payment = one_of(data, self._payments())
        if payment is None:
            return
        request = RefundRequest(
            payment_id=payment.pk,
            amount=amount or payment.amount - payment.refunding,
            reason=RefundReason.WITHDRAWN,
            units_to=units_to if payment.pays_id else RefundedUnitsTo.NOWHERE,
        )
        with dying_at(refunding, "_give_units_up", dies=dies, is_done=True):
            try:
                request_refund(request=request, now=timezone.now())
            except RefundRefused:
                return

    @precondition(lambda self: self.has_money)
    @rule(death=st.sampled_from(["", "before", "after"]), is_settled=st.booleans())
    def push_refunds(self, *, death: str, is_settled: bool) -> None:
        """Refunds are sent, and asked about; who does it may die when the provider has them."""
        if is_settled:
            SandboxRefund.objects.filter(charge__in=self._charges()).update(settles_at=timezone.now())
        for refund in self._refunds().filter(state__in=["REQUESTED", "SENT"]):
            with dying_at(sending, "end_refund", dies=death != "", is_done=death == "after"):
                sending.push_refund(refund_id=refund.pk, clock=timezone.now)

    @precondition(lambda self: self.has_money)
    @rule(data=st.data())
    def wish(self, data: st.DataObject) -> None:
        """An operator wants money for a closed order honoured."""
        payment = one_of(data, self._payments().filter(state="REFUND_DUE"))
        if payment is not None:
            try:
                request_honour(payment_id=payment.pk, actor_id=self.clerk.pk, now=timezone.now())
            except HonourRefused:
                assert payment.problem != "CLOSED_ORDER" or payment.refunding

    @precondition(lambda self: self.has_money)
    @rule(death=st.sampled_from(["", "_numbered", "reserve", "_make_ticket", "complete_honour"]))
    def honour(self, death: str) -> None:
        """Wishes are taken a step further; whoever does it may die right after any step."""
        with dying_at(honouring, death or "reserve", dies=death != "", is_done=True):
            honouring.honour_open(clock=timezone.now)

    @invariant()
    def laws_of_money(self) -> None:
        """No order is paid without money, no money comes from nowhere, none goes back twice."""
        if not self.has_money:
            return
        charges = {charge.reference: charge.amount for charge in self._charges()}
        payments, refunds = list(self._payments()), list(self._refunds())
        assert all(charges[payment.provider_reference] == payment.amount for payment in payments)
        paid = {payment.pays_id: payment.amount for payment in payments if payment.pays_id is not None}
        assert paid == {o.pk: o.unit_price * o.quantity for o in self.orders() if o.state == "PAID"}
        going, gone = sums(refunds, {"REQUESTED", "SENT", "DONE"}), sums(refunds, {"DONE"})
        for payment in payments:
            assert payment.refunding == going[payment.pk] <= payment.amount
            assert (payment.state == "REFUNDED") == (gone[payment.pk] == payment.amount)
        # The bank has given back what was asked for, and no more.
        asked = {refund.reference: refund.amount for refund in refunds}
        assert all(asked[made.reference] == made.amount for made in self._made_refunds())

    def come_to_rest(self) -> None:
        """The provider tells everything at last, and answers; refunds are made, wishes fulfilled or refused."""
        for charge in self._charges():
            self._tell(charge)
        for attempt in self._attempts().filter(state="OPEN"):
            self._ask(attempt, answers=True, ahead=timedelta())
        if self.has_money:
            self.push_refunds(death="", is_settled=True)
            self.honour(death="")

    def is_at_rest(self) -> bool:
        """Nobody waits for money, nor for an answer about it."""
        is_settled = not self._refunds().filter(state__in=["REQUESTED", "SENT"]).exists()
        is_honoured = not Honour.objects.filter(payment__in=self._payments(), state="REQUESTED").exists()
        return is_settled and is_honoured and super().is_at_rest()

    def teardown(self) -> None:
        """All money that was ever taken from a buyer is known, and either pays an order, is due, or went back."""
        super().teardown()
        self.laws_of_money()
        payments = list(self._payments())
        assert {p.provider_reference for p in payments} == {charge.reference for charge in self._charges()}
        made = sums(self._refunds(), {"DONE"})
        assert sum(made.values()) == sum(refund.amount for refund in self._made_refunds().filter(will_fail=False))
        assert all(p.pays_id or p.state in {"REFUND_DUE", "REFUNDED"} for p in payments)

    def _pay_at_the_till(self, order: Order, how: Behaviour) -> None:
        page = SandboxPayment.objects.filter(reference__startswith=f"{order.number}.").order_by("-pk").first()
        if page is not None:
            pay_at_the_till(token=page.token, behaviour=how, now=timezone.now())
            self.has_money = True

    def _tell(self, charge: SandboxCharge) -> None:
        """Send the sandbox's notification."""
        paid = Paid(provider_reference=charge.reference, order_reference=charge.payment.reference, amount=charge.amount)
        body, now = notice_of(paid), timezone.now()
        headers = {HEADER: sign(body=body, at=int(now.timestamp()))}
        take_notice(provider="sandbox", notice=RawNotice(body=body, headers=headers, received_at=now))

    def _ask(self, attempt: PaymentAttempt, *, answers: bool, ahead: timedelta) -> None:
        with pytest.MonkeyPatch.context() as patch:
            if not answers:
                patch.setattr(SandboxProvider, "query", silent)
            ask_about(attempt_id=attempt.pk, clock=lambda: timezone.now() + ahead)

    def _of_the_sale(self, name: str) -> dict[str, Any]:
        return {f"{name}__startswith": f"{self.shop.pool.pk}-"}

    def _attempts(self) -> QuerySet[PaymentAttempt]:
        return PaymentAttempt.objects.filter(**self._of_the_sale("reference"))

    def _charges(self) -> QuerySet[SandboxCharge]:
        return SandboxCharge.objects.filter(**self._of_the_sale("payment__reference")).select_related("payment")

    def _payments(self) -> QuerySet[Payment]:
        return Payment.objects.filter(**self._of_the_sale("order_reference"))

    def _refunds(self) -> QuerySet[Refund]:
        return Refund.objects.filter(**self._of_the_sale("payment__order_reference"))

    def _made_refunds(self) -> QuerySet[SandboxRefund]:
        return SandboxRefund.objects.filter(**self._of_the_sale("charge__payment__reference"))


def sums(refunds: Any, states: set[str]) -> dict[int, Decimal]:
    """The amounts of each payment's refunds in some states."""
    found = defaultdict[int, Decimal](Decimal)
    for refund in refunds:
        if refund.state in states:
            found[refund.payment_id] += refund.amount
    return found
