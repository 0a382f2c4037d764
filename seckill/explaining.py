"""The life of a purchase as one story, in words that can be read to a customer, with the clock each time comes from.

A number of the shop is enough, or a buyer, or what a payment provider calls a payment or a refund. Only what belongs to
that one order number is read, each by an index or from the head of one queue.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from inventory.models import StockMovement
from orders.models import Honour, Order, OrderEvent, Payment, PaymentAttempt, Refund
from seckill.advice import advice_for
from seckill.detail_words import in_readers_words
from seckill.errors import GateUnavailable, NotPreheated, UnknownOrder
from seckill.gate import gate
from seckill.gate.entries import QueueEntry
from seckill.gate.receipts import Receipt, ReceiptState
from seckill.models import DeadLetter, Incident, Reservation, SaleItem, Ticket
from seckill.order_numbers import bucket_of
from seckill.states import ReservationState

# Tickets of one buyer that are told of, newest first.
STORIES_MAX = 20
# Entries of a queue that are looked through for one.
ENTRIES_MAX = 1_000


class Clock(models.TextChoices):
    """Whose clock a time is from; they differ by as much as the machines' clocks do."""

    WEB = "web", gettext_lazy("web")
    REDIS = "Redis", "Redis"
    WORKER = "worker", gettext_lazy("worker")


@dataclass(frozen=True, kw_only=True)
class Line:
    """One thing that happened; ``at`` is None where nobody has noted when."""

    at: datetime | None
    clock: Clock
    words: str


@dataclass(frozen=True, kw_only=True)
class Story:
    """All that is known of one order number, in the order it happened; ``now`` says how things stand."""

    order_no: str
    buyer_id: int | None
    lines: tuple[Line, ...]
    now: str


def explain(query: str) -> list[Story]:
    """Tell the stories of an order number, of a buyer (number, name, e-mail), or of a provider's reference.

    Raises ``UnknownOrder`` when nothing answers to the query.
    """
    wanted = query.strip()
    numbers = _numbers_of(wanted)
    if not numbers:
        raise UnknownOrder
    return [_story(number) for number in numbers]


def _numbers_of(query: str) -> list[str]:
    try:
        bucket_of(query)
    except UnknownOrder:
        return _numbers_of_money(query) or _numbers_of_buyer(query)
    return [query]


def _numbers_of_money(reference: str) -> list[str]:
    """Order numbers by what a provider, or the shop towards it, calls an attempt, a payment or a refund."""
    if not reference:
        return []
    attempts = PaymentAttempt.objects.filter(reference=reference).values_list("order__number", flat=True)
    providers = list(settings.PAYMENT_PROVIDERS)  # The indexes begin with them.
    payments = Payment.objects.filter(provider__in=providers, provider_reference=reference)
    refunds = Refund.objects.filter(Q(provider__in=providers, provider_reference=reference) | Q(reference=reference))
    found = [
        *attempts,
        *payments.values_list("order__number", flat=True),
        *refunds.values_list("payment__order__number", flat=True),
    ]
    return list(dict.fromkeys(number for number in found if number))


def _numbers_of_buyer(query: str) -> list[str]:
    who = Q(email=query) if "@" in query else Q(username=query)
    if query.isascii() and query.isdigit() and len(query) <= 18:
        who |= Q(pk=int(query))
    buyers = list(get_user_model().objects.filter(who).values_list("pk", flat=True)[:2])
    tickets = Ticket.objects.filter(buyer_id__in=buyers).order_by("-pk")
    return list(tickets.values_list("order_no", flat=True)[:STORIES_MAX])


def _story(order_no: str) -> Story:
    ticket = Ticket.objects.filter(order_no=order_no).first()
    row = Reservation.objects.filter(order_no=order_no).first()
    receipt, is_readable = _receipt(order_no)
    lines = [
        *_of_ticket(ticket),
        *_of_queue(order_no=order_no, receipt=receipt),
        *_of_reservation(row),
        *_of_order(order_no),
        *_of_money(order_no),
        *_of_letters(order_no),
        *_of_ledger(order_no),
    ]
    lines += _of_incidents(order_no=order_no, lines=lines)
    buyers = [source.buyer_id for source in (row, ticket, receipt) if source is not None]
    return Story(
        order_no=order_no,
        buyer_id=buyers[0] if buyers else None,
        lines=tuple(sorted(lines, key=_millisecond)),
        now=_now(ticket=ticket, row=row, receipt=receipt, is_readable=is_readable),
    )


def _millisecond(line: Line) -> datetime:
    """The time by which lines are sorted: Redis knows no less, and within one the order of the steps counts."""
    at = line.at or datetime.max.replace(tzinfo=UTC)
    return at.replace(microsecond=at.microsecond // 1000 * 1000)


def _receipt(order_no: str) -> tuple[Receipt | None, bool]:
    """Return what Redis has of the number, and whether it could be asked."""
    try:
        return gate.look_up(bucket=bucket_of(order_no), order_no=order_no), True
    except NotPreheated:
        return None, True
    except GateUnavailable:
        return None, False


def _of_ticket(ticket: Ticket | None) -> Iterator[Line]:
    if ticket is not None:
        item = SaleItem.objects.select_related("sku", "pool__sale").filter(pk=ticket.item_id).first()
        words = _("The buyer got a ticket for {item} in “{sale}”: the right to try once.").format(
            item=item.sku if item else ticket.item_id, sale=item.pool.sale if item else ticket.pool_id
        )
        yield Line(at=ticket.issued_at, clock=Clock.WEB, words=words)


def _of_queue(*, order_no: str, receipt: Receipt | None) -> Iterator[Line]:
    if receipt is None or receipt.state is not ReceiptState.QUEUED:
        return
    snapshot = gate.snapshot(bucket=bucket_of(order_no), entries_max=ENTRIES_MAX)
    entries = [e for e in snapshot.entries if isinstance(e, QueueEntry) and e.order_no == order_no]
    words = _("Redis accepted the purchase of {units}; its order is about to be written.").format(
        units=receipt.quantity
    )
    for entry in entries:
        at = datetime.fromtimestamp(int(entry.stream_id.partition("-")[0]) / 1000, tz=UTC)
        yield Line(at=at, clock=Clock.REDIS, words=words)
    if not entries:
        yield Line(at=None, clock=Clock.REDIS, words=words)


def _of_reservation(row: Reservation | None) -> Iterator[Line]:
    if row is None:
        return
    if row.state == ReservationState.REFUSED:
        words = _("The purchase of {units} was refused: {reason}. Nothing is owed for it.")
        yield _worker(row.created_at, words.format(units=row.quantity, reason=row.get_reason_display()))
        return
    words = _("The purchase of {units} that Redis had accepted was confirmed, at {price} each.")
    yield _worker(row.created_at, words.format(units=row.quantity, price=row.unit_price))
    if row.units_returned_at is not None:
        yield _worker(row.units_returned_at, _("Its units can be bought again, and the buyer may buy again."))


def _of_order(order_no: str) -> Iterator[Line]:
    order = Order.objects.filter(number=order_no).first()
    if order is None:
        return
    words = _("The order over {amount} was written, to be paid by {time}.")
    amount = order.unit_price * order.quantity
    yield _worker(order.created_at, words.format(amount=amount, time=order.pay_by_at.isoformat(timespec="seconds")))
    for event in OrderEvent.objects.filter(order=order).select_related("actor").order_by("pk"):
        words = _("The order went from “{before}” to “{after}”{why}{who}.").format(
            before=event.get_from_state_display(),
            after=event.get_to_state_display(),
            why=f" ({event.reason})" if event.reason else "",
            who=_(", by {name}").format(name=event.actor) if event.actor else "",
        )
        yield _worker(event.created_at, words)


def _of_money(order_no: str) -> Iterator[Line]:
    for attempt in PaymentAttempt.objects.filter(order__number=order_no).order_by("pk"):
        words = _("The buyer was sent to {provider} to pay {amount} ({reference}); now: {state}.")
        facts = {"provider": attempt.provider, "amount": attempt.amount, "reference": attempt.reference}
        yield Line(
            at=attempt.created_at, clock=Clock.WEB, words=words.format(**facts, state=attempt.get_state_display())
        )
    for payment in Payment.objects.filter(order__number=order_no).order_by("pk"):
        words = _("{provider} told of {amount} ({reference}){problem}; now: {state}.").format(
            provider=payment.provider,
            amount=payment.amount,
            reference=payment.provider_reference,
            problem=f", {payment.get_problem_display()}" if payment.problem else "",
            state=payment.get_state_display(),
        )
        yield Line(at=payment.created_at, clock=Clock.WEB, words=words)
        yield from _of_refunds(payment)
        for honour in Honour.objects.filter(payment=payment).order_by("pk"):
            words = _("The payment was to be honoured with a new order {number}: {state}. {why}")
            facts = {"number": honour.number or "", "state": honour.get_state_display(), "why": honour.reason}
            yield _worker(honour.created_at, words.format(**facts).strip())


def _of_refunds(payment: Payment) -> Iterator[Line]:
    for refund in Refund.objects.filter(payment=payment).order_by("pk"):
        words = _("{amount} is to go back ({reason}; {reference}); now: {state}. {why}").format(
            amount=refund.amount,
            reason=refund.get_reason_display(),
            reference=refund.reference,
            state=refund.get_state_display(),
            why=refund.failure,
        )
        yield _worker(refund.created_at, words.strip())
        if refund.state in {"DONE", "FAILED"}:
            words = _("The refund {reference} ended: {state}.")
            yield _worker(refund.updated_at, words.format(reference=refund.reference, state=refund.get_state_display()))


def _of_letters(order_no: str) -> Iterator[Line]:
    bucket = bucket_of(order_no)
    letters = DeadLetter.objects.filter(pool_id=bucket.pool_id, bucket_no=bucket.number, fields__order=order_no)
    for letter in letters.order_by("pk"):
        words = _("The purchase could not be read or written and was put aside: {error}.")
        yield _worker(letter.created_at, words.format(error=in_readers_words(letter.error)))
        if letter.decided_at is not None:
            words = _("Somebody decided about it: {decision} ({why}).")
            facts = {"decision": letter.get_decision_display(), "why": letter.decision_reason}
            yield _worker(letter.decided_at, words.format(**facts))


def _of_ledger(order_no: str) -> Iterator[Line]:
    for movement in StockMovement.objects.filter(reference__startswith=f"return:{order_no}:").order_by("pk"):
        words = _("Ledger: {units:+d} on {account}, {kind}.")
        facts = {"units": movement.units, "account": movement.account, "kind": movement.get_kind_display()}
        yield _worker(movement.created_at, words.format(**facts))


def _of_incidents(*, order_no: str, lines: list[Line]) -> list[Line]:
    """Return what went wrong at the bucket while the order number lived."""
    times = [line.at for line in lines if line.at is not None]
    if not times:
        return []
    bucket = bucket_of(order_no)
    meanwhile = Incident.objects.filter(pool_id=bucket.pool_id, bucket_no=bucket.number, opened_at__lte=max(times))
    ended = Q(resolved_at__isnull=True) | Q(resolved_at__gte=min(times))
    words = _("Meanwhile the shop had an incident there ({kind}), {count} times seen, {end}.")
    return [
        _worker(
            incident.opened_at,
            words.format(
                kind=advice_for(incident.kind).what,
                count=incident.count,
                end=_("still open") if incident.resolved_at is None else _("over since"),
            ),
        )
        for incident in meanwhile.filter(ended).order_by("pk")[:STORIES_MAX]
    ]


def _now(*, ticket: Ticket | None, row: Reservation | None, receipt: Receipt | None, is_readable: bool) -> str:
    told: list[tuple[bool, Callable[[], str]]] = [
        (row is not None, lambda: _("It is settled: MySQL has the last word, as above.")),
        (receipt is not None, lambda: _("Redis has accepted it; the order follows within seconds.")),
        (not is_readable, lambda: _("Redis cannot be asked now, and MySQL has nothing yet: nobody can tell.")),
        (
            ticket is not None,
            lambda: _("The ticket was not used, or its use was refused: nothing is reserved."),
        ),
        (True, lambda: _("It has the form of one of the shop's numbers, and there is no trace of it.")),
    ]
    return next(words() for holds, words in told if holds)


def _worker(at: datetime, words: str) -> Line:
    return Line(at=at, clock=Clock.WORKER, words=words)
