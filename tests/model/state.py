"""A state of the model: Redis, MySQL, the bucket's row lock, what each process is about to do, what buyers heard.

Everything is a tuple, so that states are hashable and compare fast. Names are the code's names: the gate's
fields, the states' values, the tables' columns. ``tests/model/test_names.py`` holds them to the code.
"""

from typing import NamedTuple, TypeVar

from orders.states import OrderState, UnitsTo
from seckill.archive_tables import ArchiveStage
from seckill.gate.receipts import ReceiptState
from seckill.states import RefusalReason, ReservationState, SaleState

T = TypeVar("T")

SETTLED = ReservationState.SETTLED.value
REFUSED = ReservationState.REFUSED.value
RETURNED = ReservationState.RETURNED.value

LIMIT_REACHED = RefusalReason.LIMIT_REACHED.value
PHANTOM = RefusalReason.PHANTOM.value

NO_RECEIPT = ""
QUEUED_RECEIPT = ReceiptState.QUEUED.value
CONFIRMED_RECEIPT = ReceiptState.CONFIRMED.value
REFUSED_RECEIPT = ReceiptState.REFUSED.value
RETURNED_RECEIPT = ReceiptState.RETURNED.value

NO_ORDER = ""
PENDING = OrderState.PENDING_PAYMENT.value
CANCELLED = OrderState.CANCELLED.value
EXPIRED = OrderState.EXPIRED.value

ON_SALE = UnitsTo.ON_SALE.value
WAREHOUSE = UnitsTo.WAREHOUSE.value

PREHEATED = SaleState.PREHEATED.value
ARCHIVING = SaleState.ARCHIVING.value
ARCHIVED = SaleState.ARCHIVED.value

CLAIMED = ArchiveStage.CLAIMED.value
SEALED = ArchiveStage.SEALED.value
DRAINED = ArchiveStage.DRAINED.value
COPIED = ArchiveStage.COPIED.value
COMPARED = ArchiveStage.COMPARED.value
CHECKED = ArchiveStage.CHECKED.value
CLEARED = ArchiveStage.CLEARED.value
DONE = ArchiveStage.DONE.value

# What a claim's ``claim_until`` means: over for everybody, still to come, or over for all but a holder whose clock
# is behind.
LEASE_OVER, LEASE_LIVE, LEASE_DISPUTED = 0, 1, 2

# What a buyer last heard about an order number.
NOTHING, REPLY_LOST, ACCEPTED, TURNED_AWAY = 0, 1, 2, 3

# Nobody holds the bucket's row lock; else it is held by the process in that slot.
FREE = -1

# The token of a gate that settlement has frozen; rebuilds use numbers from 1.
FORKED = -1


class Entry(NamedTuple):
    """An entry of the queue; ``order`` stands for the order number and all that follows from it."""

    order: int
    epoch: int
    seq: int


class Row(NamedTuple):
    """A reservation in MySQL. ``is_owed`` is whether ``owed_at`` is set."""

    state: str
    epoch: int
    seq: int
    reason: str
    units_owed: int
    is_owed: bool


class Redis(NamedTuple):
    """The five keys of one bucket with one item, and the server's own run id."""

    server: int
    run_id: int
    epoch: int
    frozen: int
    seq: int
    adj_no: int
    adj_applied: int
    repair_no: int
    left: int
    queued: int
    buyers: tuple[int, ...]
    receipts: tuple[str, ...]
    queue: tuple[Entry, ...]
    last_id: int
    missing: tuple[str, ...]
    is_over: bool
    is_sealed: bool


class Run(NamedTuple):
    """The least drift that reconciliations have seen since ``epoch``, ``adj_no`` or ``repair_no`` changed.

    ``is_old`` is whether so much time has passed since the first that what was in flight then is not any more.
    """

    drift: int
    is_old: bool
    epoch: int
    adj_no: int
    repair_no: int


class Change(NamedTuple):
    """A manual change of the item's units under way: which of the world's, its number, and the epoch it is tried in."""

    which: int
    number: int
    epoch: int


class Half(NamedTuple):
    """What an open transfer may still keep out of this bucket's Redis: units taken (negative) or to be given."""

    number: int
    epoch: int
    units: int


class ArchiveRun(NamedTuple):
    """How far the archive is; ``copied`` are the buyers' marks in MySQL, in the order of their keys."""

    stage: str
    epoch: int
    copied: tuple[int, ...]
    is_redis_lost: bool


class MySql(NamedTuple):
    """The tables. ``rows``, ``orders`` and ``units_to`` have a place for each order number."""

    rows: tuple[Row | None, ...]
    orders: tuple[str, ...]
    units_to: tuple[str, ...]
    allocated: int
    sold: int
    warehouse: int
    epoch: int
    claim: int
    lease: int
    tokens: int
    adj_no: int
    repair_no: int
    run: Run | None
    sale: str
    change: Change | None
    changed: tuple[int, ...]
    archive: ArchiveRun | None
    # Of a bucket of several: its half of the open transfer, and the units that transfers have brought or taken.
    half: Half | None = None
    moved: int = 0


class Faults(NamedTuple):
    """What may still go wrong or be done from outside, in times."""

    deaths: int = 0
    lost_locks: int = 0
    restarts: int = 0
    lost_replies: int = 0
    repeats: int = 0
    tampers: int = 0
    deletions: int = 0
    closings: int = 0
    rebuilds_by_hand: int = 0
    reconciles: int = 0
    slow_rebuilds: int = 0


# What a process is about to do: the name of its next step and what it carries; () is idle.
Local = tuple[object, ...]


class State(NamedTuple):
    """Everything at one instant."""

    redis: Redis
    mysql: MySql
    lock: int
    locals: tuple[Local, ...]
    told: tuple[int, ...]
    saved: Redis | None
    faults: Faults
    has_forgotten: bool
    remembers_sold_out: bool

    def put(self, slot: int, local: Local) -> tuple[Local, ...]:
        """Return the locals with one process's replaced."""
        return (*self.locals[:slot], local, *self.locals[slot + 1 :])

    def frees(self, slot: int) -> int:
        """Return who holds the lock once this process has let go."""
        return FREE if self.lock == slot else self.lock


def is_open(state: State) -> bool:
    """Tell whether the gate would sell, with numbers that MySQL stands for."""
    redis = state.redis
    return (
        not redis.missing
        and redis.run_id == redis.server
        and not redis.frozen
        and redis.epoch == state.mysql.epoch
        and state.mysql.sale == PREHEATED
    )


def swap_at(places: tuple[T, ...], index: int, value: T) -> tuple[T, ...]:
    """Return a tuple with one place changed."""
    return (*places[:index], value, *places[index + 1 :])
