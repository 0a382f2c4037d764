"""The buyers of a bucket that is archived: copied in chunks, then compared, with what was read and with MySQL.

The members stand still behind the seal, so a cursor goes on where it stood. HSCAN may give one twice:
each is looked up before it is inserted. Where Redis was lost, MySQL's own sums take its place.
"""

import hashlib
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet

from seckill.archive_rows import END, marks_after, receipts_of, rows_after
from seckill.archive_run import EMPTY_DIGEST, Work, added, go_on, held, reach, with_example
from seckill.archive_tables import ArchiveStage, BuyerArchive
from seckill.conf import LIMITS
from seckill.errors import ArchiveBlocked, ArchiveWaits
from seckill.gate import archiving
from seckill.gate.archiving import Chunk
from seckill.gate.receipts import ReceiptState
from seckill.incidents import Severity, open_incident
from seckill.models import Reservation
from seckill.outcomes import in_order, units_held
from seckill.states import ReservationState

DIFFERS = "archive_differs"
# The cursor of a copy that is thrown away, to be made again.
AGAIN = "again"
# Marks that no buyer's purchase can have made; more than these, and somebody should look first.
UNREADABLE_MAX = 100
KEY_LENGTH_MAX = 64
UNITS_LENGTH_MAX = 9


def copy_buyers(work: Work) -> None:
    """Copy one chunk of buyers; after the last one the stage is ``COPIED``. Raises as ``gate.archiving``."""
    if work.run.cursor == AGAIN:
        _throw_away(work)
    elif work.run.is_redis_lost:
        _copy_from_reservations(work)
    else:
        _copy_from_redis(work)


def _throw_away(work: Work) -> None:
    """Remove one chunk of a copy that came out wrong."""
    with held(work):
        keys = list(_copied(work).order_by("limit_key").values_list("pk", flat=True)[: LIMITS.chunk_size])
        if keys:
            BuyerArchive.objects.filter(pk__in=keys).delete()
        else:
            go_on(work, cursor="", progress={"total": work.progress.get("total", 0)})


def _copy_from_redis(work: Work) -> None:
    chunk = _scan(work)
    buyers, unreadable = _readable(chunk.buyers)
    progress = work.progress
    progress["unreadable"] = {**progress.get("unreadable", {}), **unreadable}
    if len(progress["unreadable"]) > UNREADABLE_MAX:
        raise ArchiveBlocked(f"more than {UNREADABLE_MAX} buyers' marks in Redis cannot be read, such as {unreadable}")
    with held(work):
        _insert_new(work, buyers=buyers, progress=progress)
        if chunk.cursor == archiving.FIRST_CURSOR:
            reach(work, ArchiveStage.COPIED, progress=progress)
        else:
            go_on(work, cursor=chunk.cursor, progress=progress)


def _scan(work: Work) -> Chunk:
    """One chunk out of Redis, in small pieces: the buyers of other items come in between."""
    chunk = Chunk(cursor=work.run.cursor or archiving.FIRST_CURSOR, buyers={})
    while len(chunk.buyers) < LIMITS.chunk_size:
        piece = archiving.scan_buyers(
            bucket=work.bucket, epoch=work.run.epoch, cursor=chunk.cursor, count=LIMITS.archive_piece_size
        )
        chunk = Chunk(cursor=piece.cursor, buyers={**chunk.buyers, **piece.buyers})
        if piece.cursor == archiving.FIRST_CURSOR:
            break
    return chunk


def _copy_from_reservations(work: Work) -> None:
    """Copy what MySQL says that the buyers of one chunk of reservations hold."""
    progress = work.progress
    chunk = rows_after(work, progress=progress)
    with held(work):
        keys = {row.limit_key for row in chunk.rows if row.state == ReservationState.SETTLED}
        _insert_new(work, buyers=units_held(pool_id=work.run.pool_id, limit_keys=keys), progress=progress)
        if chunk.cursor == END:
            reach(work, ArchiveStage.COPIED, progress=progress)
        else:
            go_on(work, cursor=chunk.cursor, progress=progress)


def _insert_new(work: Work, *, buyers: Mapping[str, int], progress: dict[str, Any]) -> None:
    """Insert those that are not there yet, and count them and their digest; the run is held, so nobody else inserts."""
    there = set(_copied(work).filter(limit_key__in=buyers.keys()).values_list("limit_key", flat=True))
    new = {key: units for key, units in buyers.items() if key not in there}
    BuyerArchive.objects.bulk_create(
        BuyerArchive(pool_id=work.run.pool_id, bucket_no=work.run.bucket_no, limit_key=key, units=units)
        for key, units in new.items()
    )
    digest = added(progress.get("digest", EMPTY_DIGEST), new.items())
    progress |= {"digest": digest, "done": progress.get("done", 0) + len(new)}


def compare_buyers(work: Work) -> None:
    """Compare one chunk of the copy with the reservations; after the last one compare the copy with what was read.

    A copy that is not what stands in Redis is made again, with an incident. Marks that differ from
    the reservations go into the manifest: MySQL is the truth, and the copy keeps what Redis said.
    """
    progress = work.progress
    chunk = marks_after(work, progress=progress)
    marks = chunk.marks
    if chunk.cursor == END:
        _conclude(work, progress=progress)
        return
    progress |= {
        "copy_digest": added(progress.get("copy_digest", EMPTY_DIGEST), marks.items()),
        "copied": progress.get("copied", 0) + len(marks),
        "units": progress.get("units", 0) + sum(marks.values()),
    }
    for key, in_mysql in differences(work, marks=marks).items():
        progress["differing"] = progress.get("differing", 0) + 1
        example = {"limit_key": key, "redis": marks[key], "mysql": in_mysql}
        progress["examples"] = with_example(progress.get("examples", []), example)
    with held(work):
        go_on(work, cursor=chunk.cursor, progress=progress)


def _conclude(work: Work, *, progress: dict[str, Any]) -> None:
    copied, unreadable = progress.get("copied", 0), progress.get("unreadable", {})
    expected = copied
    if not work.run.is_redis_lost:
        there = archiving.members(bucket=work.bucket, epoch=work.run.epoch).buyers
        expected = there - len(unreadable)
    if copied != expected or progress.get("copy_digest", EMPTY_DIGEST) != progress.get("digest", EMPTY_DIGEST):
        _copy_again(work, detail=f"{copied} buyers are copied of {expected}, or their digests differ; copied anew")
        return
    buyers = {
        "count": copied,
        "units": progress.get("units", 0),
        "digest": progress.get("copy_digest", EMPTY_DIGEST),
        "source": "mysql" if work.run.is_redis_lost else "redis",
        "unreadable": unreadable,
        "differing": progress.get("differing", 0),
        "examples": progress.get("examples", []),
    }
    total = in_order(work.bucket).count()
    with held(work):
        reach(work, ArchiveStage.COMPARED, findings={"buyers": buyers}, progress={"total": total})


def _copy_again(work: Work, *, detail: str) -> None:
    open_incident(kind=DIFFERS, severity=Severity.CRITICAL, bucket=work.bucket, detail=detail, now=work.clock())
    progress = {"total": work.progress.get("total", 0)}
    with held(work):
        reach(work, ArchiveStage.DRAINED, progress=progress)
        go_on(work, cursor=AGAIN, progress=progress)
    raise ArchiveWaits(detail)


def differences(work: Work, *, marks: Mapping[str, int]) -> dict[str, int]:
    """Units MySQL has for those limit keys of which Redis says something else.

    What was returned since the archive began still stands in Redis: its receipt says so.
    """
    settled = units_held(pool_id=work.run.pool_id, limit_keys=set(marks))
    suspects = {key for key, units in marks.items() if settled.get(key, 0) != units}
    if not suspects:
        return {}
    found: dict[str, int] = defaultdict(int)
    returned: dict[str, int] = defaultdict(int)
    rows = Reservation.objects.filter(
        pool_id=work.run.pool_id,
        limit_key__in=suspects,
        state__in=[ReservationState.SETTLED, ReservationState.RETURNED],
    )
    listed = list(rows.values_list("limit_key", "order_no", "quantity", "state"))
    standing = _standing(work, order_numbers=[no for _, no, _, state in listed if state == ReservationState.RETURNED])
    for key, order_no, quantity, state in listed:
        if state == ReservationState.SETTLED or order_no in standing:
            found[key] += quantity
        else:
            returned[key] += quantity
    if work.run.is_redis_lost:  # Nobody can say any more which of them came back since.
        return {key: found[key] for key in suspects if not found[key] <= marks[key] <= found[key] + returned[key]}
    return {key: found[key] for key in suspects if found[key] != marks[key]}


def _standing(work: Work, *, order_numbers: list[str]) -> set[str]:
    """Those of the order numbers whose receipt in Redis still says that they are confirmed."""
    if work.run.is_redis_lost:
        return set()
    confirmed = f"{ReceiptState.CONFIRMED}|"
    receipts = receipts_of(work, order_numbers=order_numbers)
    return {number for number, text in receipts.items() if text.startswith(confirmed)}


def _copied(work: Work) -> QuerySet[BuyerArchive]:
    return BuyerArchive.objects.filter(pool_id=work.run.pool_id, bucket_no=work.run.bucket_no)


def _readable(raw: Mapping[bytes, bytes]) -> tuple[dict[str, int], dict[str, str]]:
    """Tell marks a purchase can have made from others; those are kept as text."""
    buyers: dict[str, int] = {}
    unreadable: dict[str, str] = {}
    for raw_key, raw_units in raw.items():
        key, units = raw_key.decode(errors="backslashreplace"), raw_units.decode(errors="backslashreplace")
        # MySQL takes a key with a blank behind it for the key without.
        is_key = key.encode() == raw_key and 0 < len(key) <= KEY_LENGTH_MAX and not key.endswith(" ")
        if is_key and units.isascii() and units.isdigit() and len(units) <= UNITS_LENGTH_MAX and int(units) > 0:
            buyers[key] = int(units)
        else:
            unreadable[_shown(key=key, raw_key=raw_key)] = units[:KEY_LENGTH_MAX]
    return buyers, unreadable


def _shown(*, key: str, raw_key: bytes) -> str:
    """A key as the manifest has it; one that cannot be shown as it is gets a digest, for each counts as one."""
    if key.encode() == raw_key and len(key) <= KEY_LENGTH_MAX:
        return key
    digest = hashlib.blake2b(raw_key, digest_size=8).hexdigest()
    return f"{key[: KEY_LENGTH_MAX - len(digest) - 1]}~{digest}"
