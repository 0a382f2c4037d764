"""What is to be said of money that pays no order: why, what was done by itself, and why it was not honoured."""

from collections.abc import Iterable, Mapping

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django_stubs_ext import StrOrPromise

from orders.models import Honour, Payment
from orders.states import HonourState, PaymentProblem, PaymentState

WORDS: Mapping[str, StrOrPromise] = {
    PaymentProblem.WRONG_AMOUNT: gettext_lazy(
        "Another amount arrived than the order costs. The order was not paid by it and still waits, or has run out."
    ),
    PaymentProblem.UNKNOWN_ORDER: gettext_lazy(
        "The money names no order of this shop. It was recorded; nobody was given anything for it."
    ),
    PaymentProblem.CLOSED_ORDER: gettext_lazy(
        "The money came after the order was closed. The order stays closed, its units are somebody else's by now or on"
        " sale. It can be given back, or honoured: a unit is taken again, if one is left."
    ),
    PaymentProblem.SECOND_PAYMENT: gettext_lazy(
        "The order was paid already. This is the second payment; the first one stands."
    ),
}


def in_words(*, payment: Payment, refused: str | None) -> str:
    """Say why money pays no order, and how far it is; "" for money that does. ``refused`` is of the last honour."""
    if not payment.problem or payment.state == PaymentState.ACCEPTED:
        return ""
    said = [str(WORDS[payment.problem])]
    if refused:
        said.append(_("It was to be honoured, and could not be: %(why)s.") % {"why": refused})
    return " ".join(said)


def refused_honours(*, payment_ids: Iterable[int]) -> Mapping[int, str]:
    """Why the last honour of each of these payments was refused, in words."""
    rows = Honour.objects.filter(payment_id__in=list(payment_ids), state=HonourState.REFUSED).order_by("pk")
    return {row.payment_id: row.get_reason_display() for row in rows}
