"""Mending: members that differ are written anew from MySQL; what would open a door only with proof.

A mark that is missing, too low or unreadable is set at once: the buyer could reserve above his
limit, and MySQL would have to refuse him. A mark that is too high is lowered once two looks half a
minute apart have shown the same numbers. A receipt that is not what the row says is written from the
row; one without a row is left as it is, and is an incident: nothing is deleted on a guess.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _

from seckill import rounds
from seckill.conf import LIMITS
from seckill.errors import GateUnavailable
from seckill.gate import members as gate_members
from seckill.gate.entries import to_text
from seckill.gate.keys import BucketRef
from seckill.gate.members import Mend
from seckill.incidents import Severity, open_incident
from seckill.members import Candidates, Look, MarkDifference, ReceiptDifference, look_at
from seckill.rounds import Round, Suspect

MARKS = "marks_differ"
RECEIPTS = "receipts_differ"

PROOF_SECONDS = 30
# So many are told one by one; the others are counted.
FINDINGS_MAX = 100


class Extent(StrEnum):
    """How much of the members a run looks at."""

    WINDOW = "window"
    FULL = "full"


class Treatment(StrEnum):
    """What a run does about what differs."""

    LOOK = "look"
    MEND = "mend"


class Outcome(TextChoices):
    """What became of one member that differed."""

    FOUND = "found", _("not repaired")
    MENDED = "mended", _("repaired")
    AWAITS_PROOF = "awaits_proof", _("repaired when a second look in half a minute has shown the same")
    OVERTAKEN = "overtaken", _("it changed meanwhile")
    LEFT_ALONE = "left_alone", _("left as it is")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One member that differs, as an operator reads it; ``in_mysql`` is empty where MySQL has no row."""

    member: str
    name: str
    in_redis: str
    in_mysql: str
    outcome: Outcome


@dataclass(frozen=True, kw_only=True)
class MembersReport:
    """What one run found; ``clean_since`` is set when it finished a round in which nothing differed."""

    looked_at: int = 0
    is_complete: bool = False
    count: int = 0
    findings: tuple[Finding, ...] = ()
    clean_since: datetime | None = None

    @property
    def is_balanced(self) -> bool:
        """Whether nothing differed."""
        return self.count == 0


def compare_members(
    *, bucket: BucketRef, clock: Callable[[], datetime], extent: Extent, treatment: Treatment
) -> MembersReport:
    """Go on with the bucket's round, or make a whole one, and treat what differs.

    Raises ``GateUnavailable``, ``NotPreheated`` or ``CommitsLost``; then nothing is known.
    """
    state = rounds.current_round(bucket=bucket, now=clock())
    if extent is Extent.FULL:
        state = state.begun_again(now=clock())
    report, looks = MembersReport(), 0
    again = Candidates(limit_keys=frozenset(state.suspects if extent is Extent.WINDOW else ()))
    while not state.cursor.is_at_the_end and (extent is Extent.FULL or looks < LIMITS.looks_per_run):
        candidates, cursor = rounds.next_candidates(bucket=bucket, cursor=state.cursor)
        look = look_at(bucket=bucket, candidates=candidates | again)
        if look.epoch != state.epoch:
            raise GateUnavailable("the bucket was rebuilt meanwhile")
        findings = _treat(bucket=bucket, look=look, state=state, treatment=treatment, now=clock())
        state = _gone_on(state=state, look=look, candidates=candidates | again, cursor=cursor, now=clock())
        report = _added(report=report, look=look, findings=findings)
        again, looks = Candidates(), looks + 1
    if state.cursor.is_at_the_end:
        state = state.finished()
        report = replace(report, is_complete=True, clean_since=state.clean_since)
    if not rounds.keep(bucket=bucket, state=state):
        report = replace(report, clean_since=None)
    _tell(bucket=bucket, report=report, now=clock())
    return report


def as_plain(report: MembersReport | None) -> dict[str, Any]:
    """The report as JSON has it; empty where the members could not be looked at."""
    if report is None:
        return {}
    return {
        "looked_at": report.looked_at,
        "is_complete": report.is_complete,
        "differ": report.count,
        "findings": [vars(finding) | {"outcome": finding.outcome.value} for finding in report.findings],
    }


def _treat(*, bucket: BucketRef, look: Look, state: Round, treatment: Treatment, now: datetime) -> list[Finding]:
    """Mend what may be mended; return every difference with its outcome."""
    outcomes: dict[str, Outcome] = {}
    marks = [mark for mark in look.marks if not mark.is_too_high or _is_proved(mark, state.suspects, now)]
    receipts = [receipt for receipt in look.receipts if receipt.wanted]
    if treatment is Treatment.MEND and (marks or receipts):
        written = gate_members.mend(
            bucket=bucket,
            epoch=look.epoch,
            seen_mend_no=look.mend_no,
            marks=[Mend(name=m.limit_key, seen=m.seen, wanted=str(m.units_held)) for m in marks],
            receipts=[Mend(name=r.order_no, seen=r.seen, wanted=r.wanted) for r in receipts],
        )
        names = [mark.limit_key for mark in marks] + [receipt.order_no for receipt in receipts]
        outcomes = {name: Outcome.MENDED if name in written else Outcome.OVERTAKEN for name in names}
    return [_mark(mark, outcomes, treatment) for mark in look.marks] + [
        _receipt(receipt, outcomes) for receipt in look.receipts
    ]


def _is_proved(mark: MarkDifference, suspects: Mapping[str, Suspect], now: datetime) -> bool:
    """Whether a look at least half a minute ago saw the same numbers."""
    before = suspects.get(mark.limit_key)
    return (
        before is not None
        and (before.seen, before.units_held) == (_text(mark.seen), mark.units_held)
        and before.since <= now - timedelta(seconds=PROOF_SECONDS)
    )


def _gone_on(*, state: Round, look: Look, candidates: Candidates, cursor: rounds.Cursor, now: datetime) -> Round:
    """The round after a look: suspects that came right are forgotten, new ones remembered."""
    suspects = {key: suspect for key, suspect in state.suspects.items() if key not in candidates.limit_keys}
    for mark in look.marks:
        if not mark.is_too_high:
            continue
        before = state.suspects.get(mark.limit_key)
        seen = Suspect(seen=_text(mark.seen), units_held=mark.units_held, since=now)
        is_same = before is not None and replace(before, since=now) == seen
        suspects[mark.limit_key] = before if before is not None and is_same else seen
    return replace(state, cursor=cursor, suspects=suspects, found=state.found + len(look.marks) + len(look.receipts))


def _added(*, report: MembersReport, look: Look, findings: Sequence[Finding]) -> MembersReport:
    told = {(finding.member, finding.name) for finding in report.findings}
    new = [finding for finding in findings if (finding.member, finding.name) not in told]
    return replace(
        report,
        looked_at=report.looked_at + look.looked_at,
        count=report.count + len(new),
        findings=(*report.findings, *new)[:FINDINGS_MAX],
    )


def _tell(*, bucket: BucketRef, report: MembersReport, now: datetime) -> None:
    """Open an incident for each kind of member that differs; a clean round closes them."""
    marks = [f for f in report.findings if f.member == "mark"]
    receipts = [f for f in report.findings if f.member == "receipt"]
    if marks:
        open_incident(kind=MARKS, severity=Severity.WARNING, bucket=bucket, detail=_words(marks), now=now)
    if receipts:
        is_nobodys = any(not finding.in_mysql for finding in receipts)
        severity = Severity.CRITICAL if is_nobodys else Severity.WARNING
        open_incident(kind=RECEIPTS, severity=severity, bucket=bucket, detail=_words(receipts), now=now)


def _words(findings: Sequence[Finding]) -> str:
    first = "; ".join(
        f"{f.member} {f.name}: Redis {f.in_redis or 'nothing'}, MySQL {f.in_mysql or 'no row'} ({f.outcome.value})"
        for f in findings[:3]
    )
    return f"{len(findings)} differ: {first}"


def _mark(mark: MarkDifference, outcomes: Mapping[str, Outcome], treatment: Treatment) -> Finding:
    left = Outcome.AWAITS_PROOF if mark.is_too_high and treatment is Treatment.MEND else Outcome.FOUND
    return Finding(
        member="mark",
        name=mark.limit_key,
        in_redis=_text(mark.seen),
        in_mysql=str(mark.units_held),
        outcome=outcomes.get(mark.limit_key, left),
    )


def _receipt(receipt: ReceiptDifference, outcomes: Mapping[str, Outcome]) -> Finding:
    return Finding(
        member="receipt",
        name=receipt.order_no,
        in_redis=_text(receipt.seen),
        in_mysql=receipt.wanted,
        outcome=outcomes.get(receipt.order_no, Outcome.FOUND if receipt.wanted else Outcome.LEFT_ALONE),
    )


def _text(raw: bytes | None) -> str:
    return "" if raw is None else to_text(raw)
