"""The verdict on a sale: what MySQL and Redis say themselves, held against the laws and against what buyers were told.

Needs Django set up.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import QuerySet
from django.utils import timezone

from benchmarks.allowance import NOTHING, Allowance
from benchmarks.plan import End, Outcome, Result
from inventory.models import StockMovement
from orders.models import Order
from seckill.audit import Books as AuditedBook
from seckill.audit import all_books
from seckill.gate.connection import raw_client
from seckill.gate.keys import BucketRef
from seckill.gate.receipts import ReceiptState
from seckill.mending import Extent
from seckill.models import Bucket, Incident, ItemBucket, Reservation
from seckill.outcomes import account_of
from seckill.reconciliation import BucketReport, Verdict, reconcile_bucket
from seckill.selectors import gate_numbers
from seckill.states import ReservationState

EXAMPLES_MAX = 3
EPOCH_FIELD = b"#epoch"


@dataclass(frozen=True, kw_only=True)
class Noticed:
    """An incident the shop raised by itself."""

    kind: str
    detail: str
    is_open: bool


@dataclass(frozen=True, kw_only=True)
class Books:
    """What MySQL and Redis say of a sale of one item with a limit of one.

    `owners` has the buyer of each order number, `ledger_units` the sum of the item's account, `incidents` what the shop
    itself found wrong, mended since or not, `wrong_books` what the audit of the whole shop's stock finds.
    `wrong_members` tells of buyers' marks and receipts in Redis that are not what the rows in MySQL say, read here
    without the shop's own comparison. `left_in_redis` is None and `law_7` empty when Redis cannot be asked.
    """

    allocated: int
    sold: int
    owners: Mapping[str, int]
    order_units: int
    settled_units: int
    refused: Mapping[str, int]
    ledger_units: int
    left_in_redis: int | None
    incidents: Sequence[Noticed]
    wrong_books: Sequence[AuditedBook]
    wrong_members: Sequence[str]
    law_7: BucketReport

    @property
    def left_in_mysql(self) -> int:
        """Units that no settled reservation has."""
        return self.allocated - self.sold

    @property
    def oversold(self) -> int:
        """Units beyond those allocated, by whichever count is highest."""
        return max(0, max(self.sold, self.order_units, self.settled_units) - self.allocated)

    @property
    def duplicate_orders(self) -> int:
        """Orders beyond each buyer's first."""
        return len(self.owners) - len(set(self.owners.values()))


def read_books(*, bucket: BucketRef, item_id: int) -> Books:
    """Read a sale's numbers and reconcile it."""
    row = Bucket.objects.get(pool_id=bucket.pool_id, number=bucket.number)
    units = ItemBucket.objects.get(bucket_id=row.pk, item_id=item_id)
    orders = list(orders_of(bucket).values_list("number", "buyer_id", "quantity"))
    reservations = list(Reservation.objects.filter(pool_id=bucket.pool_id).values_list("state", "reason", "quantity"))
    incidents = Incident.objects.filter(pool_id=bucket.pool_id).order_by("pk")
    snapshot = gate_numbers(bucket=bucket)
    account = account_of(item_id=item_id, bucket=bucket)
    return Books(
        allocated=units.allocated,
        sold=units.sold,
        owners={number: buyer_id for number, buyer_id, _ in orders},
        order_units=sum(quantity for _, _, quantity in orders),
        settled_units=sum(quantity for state, _, quantity in reservations if state == ReservationState.SETTLED),
        refused=Counter(reason for state, reason, _ in reservations if state == ReservationState.REFUSED),
        ledger_units=sum(StockMovement.objects.filter(account=account).values_list("units", flat=True)),
        left_in_redis=None if snapshot is None else snapshot.left.get(item_id),
        incidents=[
            Noticed(kind=kind, detail=detail, is_open=open_key is not None)
            for kind, detail, open_key in incidents.values_list("kind", "detail", "open_key")
        ],
        law_7=reconcile_bucket(bucket=bucket, clock=timezone.now, extent=Extent.FULL),
        wrong_books=[book for book in all_books() if not book.is_balanced],
        wrong_members=[] if snapshot is None else list(_wrong_members(bucket)),
    )


def _wrong_members(bucket: BucketRef) -> Iterator[str]:
    """Compare each buyer's mark with the units he holds, and each settled order's receipt; the queue must be empty."""
    buyers, receipts = (raw_client().hgetall(key) for key in bucket.keys[2:4])
    marks = {key.decode(): int(units) for key, units in buyers.items() if key != EPOCH_FIELD}
    told = {key.decode(): value.decode().split("|")[0] for key, value in receipts.items() if key != EPOCH_FIELD}
    rows = Reservation.objects.filter(pool_id=bucket.pool_id, bucket_no=bucket.number)
    settled = rows.filter(state=ReservationState.SETTLED).values_list("order_no", "limit_key", "quantity")
    held = Counter[str]()
    for order_no, limit_key, quantity in settled:
        held[limit_key] += quantity
        if told.get(order_no) != ReceiptState.CONFIRMED:
            yield f"the receipt of order {order_no} says {told.get(order_no, 'nothing')}"
    for limit_key in sorted(marks.keys() | held.keys()):
        if marks.get(limit_key, 0) != held[limit_key]:
            yield f"buyer {limit_key} is marked with {marks.get(limit_key, 0)} units and holds {held[limit_key]}"


def orders_of(bucket: BucketRef) -> QuerySet[Order]:
    """Return the orders that came from a pool; their numbers begin with it."""
    return Order.objects.filter(number__startswith=f"{bucket.pool_id}-")


def broken_laws(*, books: Books, result: Result, allowance: Allowance = NOTHING) -> list[str]:
    """Say in words what must not be, a sentence each; empty when all is as it must be."""
    return [
        *_broken_in_books(books),
        *_incidents(books=books, allowance=allowance),
        *_lies(books=books, outcomes=result.outcomes),
        *_forgotten(outcomes=result.outcomes, allowance=allowance),
        *_failures(result.outcomes),
    ]


def lost_orders(*, books: Books, outcomes: Sequence[Outcome]) -> list[str]:
    """Order numbers of accepted purchases that became no order and whose buyers heard of no reason why."""
    accepted = (outcome for outcome in outcomes if outcome.was_accepted and not outcome.was_forgotten)
    return [o.order_no for o in accepted if o.order_no not in books.owners and o.end is not End.REFUSED]


def _broken_in_books(books: Books) -> Iterator[str]:
    if books.oversold:
        yield (
            f"Law 1, never oversold: of {books.allocated} units MySQL counts {books.sold} as sold, has orders for"
            f" {books.order_units} and reservations for {books.settled_units}."
        )
    if books.duplicate_orders:
        twice = [buyer for buyer, orders in Counter(books.owners.values()).items() if orders > 1]
        yield f"Law 2, one unit a buyer: {_some('buyer', twice)} more than one order."
    if len({books.sold, books.order_units, books.settled_units}) > 1:
        yield (
            f"Law 3, one fate: {books.sold} units are counted as sold, orders have {books.order_units},"
            f" reservations {books.settled_units}."
        )
    if books.ledger_units != books.left_in_mysql:
        yield (
            f"Law 10, the ledger: its account has {books.ledger_units} units,"
            f" allocated minus sold is {books.left_in_mysql}."
        )
    if books.law_7.verdict != Verdict.BALANCED:
        yield f"Law 7, conservation: {books.law_7.verdict.label}, {law_7_text(books) or books.law_7.explanation}."
    elif not books.law_7.is_balanced:
        yield f"Reconciliation of every member and the ledger found a difference: {books.law_7.members}."
    for book in books.wrong_books[:EXAMPLES_MAX]:
        yield f"Law 10, the ledger: {book.kind} {book.name} is stored as {book.stored}, the ledger says {book.ledger}."
    for difference in books.wrong_members[:EXAMPLES_MAX]:
        yield f"Law 4, marks and receipts: {difference}; {len(books.wrong_members)} in all are wrong."


def _incidents(*, books: Books, allowance: Allowance) -> Iterator[str]:
    for incident in books.incidents:
        if incident.kind not in allowance.incidents:
            yield f"The shop itself noticed something that must not be: {incident.kind}, {incident.detail}."
        elif incident.is_open:
            yield f"An incident is still open: {incident.kind}, {incident.detail}."


def law_7_text(books: Books) -> str:
    """Write law 7 with its numbers; "" when Redis could not be asked."""
    return "; ".join(
        f"allocated {item.allocated} = sold {item.sold} + left {item.left} + in flight {item.in_flight}"
        f" + owed {item.owed} + adjusting {item.adjusting} + drift {item.drift}"
        for item in books.law_7.items
    )


def _lies(*, books: Books, outcomes: tuple[Outcome, ...]) -> Iterator[str]:
    """Law 6, nobody is lied to: compare what each buyer was told with the orders."""
    told = {outcome.order_no: outcome for outcome in outcomes}
    promised = {number: outcome.buyer_id for number, outcome in told.items() if outcome.end is End.CONFIRMED}
    missing = [number for number, buyer_id in promised.items() if books.owners.get(number) != buyer_id]
    if missing:
        yield f"Law 6, nobody is lied to: {_some('confirmed order', missing)} no row in MySQL for its buyer."
    sent_away = [n for n in books.owners if n in told and told[n].end in {End.TURNED_AWAY, End.REFUSED, End.RETURNED}]
    if sent_away:
        yield f"Law 6, nobody is lied to: {_some('order', sent_away)} a buyer who was told there is none."
    strangers = [number for number in books.owners if number not in told]
    if strangers:
        yield f"Law 3, one fate: {_some('order', strangers)} nobody who asked for it."
    sold_out = sum(1 for outcome in outcomes if outcome.reason == "sold_out")
    if sold_out and books.left_in_mysql:
        yield (
            f"Law 6, nobody is lied to: buyers were told that everything is taken ({sold_out}),"
            f" but there are units left ({books.left_in_mysql})."
        )


def _forgotten(*, outcomes: Sequence[Outcome], allowance: Allowance) -> Iterator[str]:
    forgotten = [outcome.order_no for outcome in outcomes if outcome.was_forgotten]
    if len(forgotten) > allowance.forgotten_max:
        yield f"Law 6, nobody is lied to: {_some('accepted purchase', forgotten)} been forgotten."


def _failures(outcomes: tuple[Outcome, ...]) -> Iterator[str]:
    """Every buyer must reach a definite end."""
    reasons = Counter(outcome.reason for outcome in outcomes if outcome.end is End.FAILED)
    for reason, buyers in reasons.most_common(EXAMPLES_MAX):
        yield f"No definite end for {buyers} {'buyer' if buyers == 1 else 'buyers'}: {reason}."


def _some(noun: str, examples: list[int] | list[str]) -> str:
    """Write "2 orders (a, b) have", so many examples at most."""
    shown = ", ".join(str(example) for example in examples[:EXAMPLES_MAX])
    dots = ", …" if len(examples) > EXAMPLES_MAX else ""
    many = len(examples) > 1
    return f"{len(examples)} {noun}{'s' if many else ''} ({shown}{dots}) {'have' if many else 'has'}"
