"""The receipts of a bucket that is archived, against the reservations that outlive them.

Receipts are not copied: each has a reservation that says the same and more. That this is so is
proved one by one, by count and by digest, before Redis forgets them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from seckill.archive_rows import END, Row, receipts_of, rows_after
from seckill.archive_run import EMPTY_DIGEST, Work, added, go_on, held, reach, with_example
from seckill.archive_tables import ArchiveStage, BuyerArchive
from seckill.gate import archiving
from seckill.gate.receipts import Receipt, ReceiptState
from seckill.members import RECEIPT_STATES
from seckill.states import ReservationState


def check_receipts(work: Work) -> None:
    """Check one chunk of reservations against receipts and copied marks; after the last the stage is ``CHECKED``.

    What differs goes into the manifest: MySQL is the truth. Raises as ``gate.archiving``.
    """
    if work.run.is_redis_lost:
        with held(work):
            reach(work, ArchiveStage.CHECKED, findings={"receipts": {"compared": False}})
        return
    progress = work.progress
    chunk = rows_after(work, progress=progress)
    if chunk.cursor == END:
        _conclude(
            work, in_redis=archiving.members(bucket=work.bucket, epoch=work.run.epoch).receipts, progress=progress
        )
        return
    rows = chunk.rows
    receipts = receipts_of(work, order_numbers=[row.order_no for row in rows])
    _compare(rows=rows, receipts=receipts, progress=progress)
    _miss_marks(work, rows=rows, progress=progress)
    progress["done"] = progress.get("done", 0) + len(rows)
    with held(work):
        go_on(work, cursor=chunk.cursor, progress=progress)


def _compare(*, rows: Sequence[Row], receipts: Mapping[str, str], progress: dict[str, Any]) -> None:
    said = {row.order_no: receipts.get(row.order_no, "") for row in rows}
    expected = {row.order_no: _expected(row=row, said=said[row.order_no]) for row in rows}
    progress |= {
        "redis_digest": added(progress.get("redis_digest", EMPTY_DIGEST), said.items()),
        "mysql_digest": added(progress.get("mysql_digest", EMPTY_DIGEST), expected.items()),
    }
    for order_no, text in said.items():
        if text != expected[order_no]:
            progress["differing"] = progress.get("differing", 0) + 1
            example = {"order_no": order_no, "redis": text, "mysql": expected[order_no]}
            progress["examples"] = with_example(progress.get("examples", []), example)


def _expected(*, row: Row, said: str) -> str:
    """What the receipt ought to say; of one returned since the archive began, still that it is confirmed."""
    state = RECEIPT_STATES[ReservationState(row.state)]
    if state is ReceiptState.RETURNED and said.startswith(f"{ReceiptState.CONFIRMED}|"):
        state = ReceiptState.CONFIRMED
    return str(
        Receipt(state=state, item_id=row.item_id, quantity=row.quantity, buyer_id=row.buyer_id, reason=row.reason)
    )


def _miss_marks(work: Work, *, rows: Sequence[Row], progress: dict[str, Any]) -> None:
    """Find settled reservations whose buyers have no mark in the copy: somebody took it away by hand."""
    keys = {row.limit_key for row in rows if row.state == ReservationState.SETTLED}
    copied = BuyerArchive.objects.filter(
        pool_id=work.run.pool_id, bucket_no=work.run.bucket_no, limit_key__in=keys
    ).values_list("limit_key", flat=True)
    missing = keys - set(copied)
    progress["marks_missing"] = progress.get("marks_missing", 0) + len(missing)
    for key in sorted(missing):
        progress["missing"] = with_example(progress.get("missing", []), key)


def _conclude(work: Work, *, in_redis: int, progress: dict[str, Any]) -> None:
    receipts = {
        "compared": True,
        "in_redis": in_redis,
        "in_mysql": progress.get("done", 0),
        "redis_digest": progress.get("redis_digest", EMPTY_DIGEST),
        "mysql_digest": progress.get("mysql_digest", EMPTY_DIGEST),
        "differing": progress.get("differing", 0),
        "examples": progress.get("examples", []),
        "marks_missing": progress.get("marks_missing", 0),
        "missing": progress.get("missing", []),
    }
    with held(work):
        reach(work, ArchiveStage.CHECKED, findings={"receipts": receipts})
