"""The audit of one item as a page shows it: the last comparison of each bucket term by term, and both stores now.

The exact numbers are those of the stored reconciliation, which held the bucket's lock; a page that is looked at takes
no lock and reads no member. Whoever wants newer ones has a reconciliation made.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta

from django.db.models import F

from inventory.selectors import balances
from seckill.errors import GateUnavailable
from seckill.gate.keys import BucketRef
from seckill.gate.pulse import Pulse, pulses
from seckill.latest_runs import latest_runs
from seckill.member_tables import MemberRound
from seckill.mending import Outcome
from seckill.models import ReconciliationRun
from seckill.outcomes import account_of
from seckill.reconciliation import ItemBalance
from seckill.sampling import Part, parts_of
from seckill.transfer_tables import Transfer

# Findings of older runs say little about now.
FINDINGS_LOOK_BACK = timedelta(hours=24)
RUNS_WITH_FINDINGS_MAX = 50
TRANSFERS_SHOWN_MAX = 20
TERMS = tuple(field.name for field in fields(ItemBalance) if field.name != "item_id")


@dataclass(frozen=True, kw_only=True)
class BucketAudit:
    """One bucket of an item: law 7 as last compared (``terms`` is None before), and both stores as of now."""

    bucket: BucketRef
    run: ReconciliationRun | None
    terms: ItemBalance | None
    allocated: int
    sold: int
    left: int | None
    queued: int | None
    ledger: int

    @property
    def shown(self) -> list[tuple[str, int | None]]:
        """Each term as last compared, by its name."""
        return [(name, None if self.terms is None else getattr(self.terms, name)) for name in TERMS]

    @property
    def is_ledger_right(self) -> bool:
        """Whether the ledger has on the item's account what MySQL has not sold."""
        return self.ledger == self.allocated - self.sold


@dataclass(frozen=True, kw_only=True)
class MemberFinding:
    """A buyer's mark or an order's receipt that differed when it was looked at."""

    at: datetime
    bucket: BucketRef
    member: str
    name: str
    in_redis: str
    in_mysql: str
    outcome: str

    @property
    def outcome_label(self) -> str:
        """What became of it, in words."""
        return str(Outcome(self.outcome).label) if self.outcome in Outcome.values else self.outcome


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """How far the round over a bucket's members is, and since when everything was right."""

    bucket: BucketRef
    began_at: datetime | None
    clean_since: datetime | None
    differ: int
    suspects: int


def audit_of_item(*, item_id: int) -> list[BucketAudit]:
    """The item bucket by bucket; none before its preheat. A handful of statements, however many buckets."""
    parts = parts_of(item_id=item_id)
    buckets = [part.bucket for part in parts]
    try:
        felt: Mapping[BucketRef, Pulse] = pulses(buckets=buckets)
    except GateUnavailable:
        felt = {}
    runs = latest_runs(pool_ids=sorted({bucket.pool_id for bucket in buckets}))
    accounts = {bucket: account_of(item_id=item_id, bucket=bucket) for bucket in buckets}
    ledger = balances(accounts=list(accounts.values())) if accounts else {}
    return [
        _bucket(
            part=part,
            run=runs.get(part.bucket),
            pulse=felt.get(part.bucket),
            ledger=ledger.get(accounts[part.bucket], 0),
        )
        for part in parts
    ]


def differing_members(*, pool_id: int, now: datetime) -> list[MemberFinding]:
    """Members that differed in the last day's runs, the newest first; bounded, and read from what the runs stored."""
    runs = ReconciliationRun.objects.filter(
        pool_id=pool_id, created_at__gte=now - FINDINGS_LOOK_BACK, members__differ__gt=0
    ).order_by("-pk")
    return [
        MemberFinding(
            at=run.created_at,
            bucket=BucketRef(pool_id=run.pool_id, number=run.bucket_no),
            **{name: str(found.get(name, "")) for name in ("member", "name", "in_redis", "in_mysql", "outcome")},
        )
        for run in runs[:RUNS_WITH_FINDINGS_MAX]
        for found in run.members.get("findings", [])
    ]


def coverage_of(*, pool_id: int) -> list[Coverage]:
    """How far the rounds over a pool's members are."""
    return [
        Coverage(
            bucket=BucketRef(pool_id=pool_id, number=row.bucket_no),
            began_at=row.began_at,
            clean_since=row.clean_since,
            differ=row.found,
            suspects=len(row.suspects),
        )
        for row in MemberRound.objects.filter(pool_id=pool_id).order_by("bucket_no")
    ]


def transfers_of(*, item_id: int) -> list[Transfer]:
    """The item's latest transfers between its buckets, those under way first."""
    rows = Transfer.objects.filter(item_id=item_id).order_by(F("finished_at").desc(nulls_first=True), "-pk")
    return list(rows[:TRANSFERS_SHOWN_MAX])


def summed(audits: Sequence[BucketAudit]) -> dict[str, int] | None:
    """The terms of law 7 over all buckets; None while one of them was never compared."""
    terms = [audit.terms for audit in audits]
    known = [term for term in terms if term is not None]
    if not terms or len(known) < len(terms):
        return None
    sums = {name: sum(getattr(term, name) for term in known) for name in TERMS}
    return sums | {"drift": sum(term.drift for term in known)}


def _bucket(*, part: Part, run: ReconciliationRun | None, pulse: Pulse | None, ledger: int) -> BucketAudit:
    units = None if pulse is None else pulse.units.get(part.item_id)
    return BucketAudit(
        bucket=part.bucket,
        run=run,
        terms=_terms(item_id=part.item_id, run=run),
        allocated=part.allocated,
        sold=part.sold,
        left=None if units is None else units.left,
        queued=None if units is None else units.queued,
        ledger=ledger,
    )


def _terms(*, item_id: int, run: ReconciliationRun | None) -> ItemBalance | None:
    """The item's terms as the run stored them; None where it could not look."""
    for stored in [] if run is None else run.numbers:
        if stored.get("item_id") == item_id:
            return ItemBalance(item_id=item_id, **{name: int(stored.get(name, 0)) for name in TERMS})
    return None
