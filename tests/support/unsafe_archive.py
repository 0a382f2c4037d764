"""The unsafe versions of the archive that controls swap in."""

from collections.abc import Callable

import pytest
from django.db import transaction

from seckill import archive, archive_steps
from seckill.archive_run import Work, reach, require_held
from seckill.archive_tables import ArchiveStage, BuyerArchive
from seckill.gate import archiving
from seckill.gate.archiving import Chunk, Members
from seckill.gate.connection import raw_client
from seckill.gate.keys import BucketRef
from seckill.models import ItemBucket


def clear_without_a_lock(monkeypatch: pytest.MonkeyPatch, *, meanwhile: Callable[[], None]) -> None:
    """Read what is left over, let something happen, write what was read."""

    def clear(work: Work) -> None:
        units = list(ItemBucket.objects.all())
        meanwhile()
        with transaction.atomic(durable=True):
            require_held(work)
            for unit in units:
                ItemBucket.objects.filter(pk=unit.pk).update(allocated=unit.sold)
            leftovers = {str(unit.item_id): unit.allocated - unit.sold for unit in units}
            archive_steps._put_away(bucket=work.bucket, leftovers=leftovers, work=work)
            reach(work, ArchiveStage.CLEARED, findings={"leftovers": leftovers})

    monkeypatch.setattr(archive, "STEPS", {**archive_steps.STEPS, ArchiveStage.CHECKED: clear})


def archive_without_a_seal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copy a bucket that is still open, by plain commands, and believe that nothing has changed."""

    def scan(*, bucket: BucketRef, **_: object) -> Chunk:
        buyers = raw_client().hgetall(bucket.keys[2])
        buyers.pop(b"#epoch")
        return Chunk(cursor=archiving.FIRST_CURSOR, buyers=buyers)

    def members(*, bucket: BucketRef, **_: object) -> Members:
        receipts = {key.decode(): text.decode() for key, text in raw_client().hgetall(bucket.keys[3]).items()}
        copied = BuyerArchive.objects.count()
        return Members(buyers=copied, receipts=len(receipts) - 1, receipts_of=receipts)

    monkeypatch.setattr(archiving, "seal", lambda **_: True)
    monkeypatch.setattr(archiving, "close", lambda **_: True)
    monkeypatch.setattr(archiving, "scan_buyers", scan)
    monkeypatch.setattr(archiving, "members", members)
