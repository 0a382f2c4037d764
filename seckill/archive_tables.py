"""Tables of the archive: how far each bucket's run has come, and the buyers that stood in Redis."""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from seckill.errors import GateUnavailable
from seckill.gate.keys import BucketRef


class ArchiveStage(models.TextChoices):
    """What of an archive run is done, in this order. Only a copy that came out wrong goes back, to ``DRAINED``."""

    CLAIMED = "CLAIMED", _("claimed: the sale is being archived")
    SEALED = "SEALED", _("sealed: nothing but settlement changes Redis")
    DRAINED = "DRAINED", _("drained: the queue is empty")
    COPIED = "COPIED", _("copied: the buyers stand in MySQL")
    COMPARED = "COMPARED", _("compared: the copy with what was read, and with the reservations")
    CHECKED = "CHECKED", _("checked: the reservations with the receipts")
    CLEARED = "CLEARED", _("cleared: units left over are in the warehouse")
    DONE = "DONE", _("done: Redis has forgotten the bucket")


class ArchiveRun(models.Model):
    """The archive of one bucket: one row, whose stage says what is done.

    ``cursor`` and ``progress`` belong to the stage under way and are written together with what it has
    done, so that a run killed anywhere goes on from there. ``manifest`` is what is kept for good.
    """

    pool = models.ForeignKey("seckill.SalePool", on_delete=models.PROTECT, related_name="+", verbose_name=_("pool"))
    bucket_no = models.PositiveSmallIntegerField(_("bucket"))
    epoch = models.PositiveIntegerField(_("epoch"))
    stage = models.CharField(_("stage"), max_length=16, choices=ArchiveStage, default=ArchiveStage.CLAIMED)
    cursor = models.CharField(max_length=80, blank=True, db_collation="utf8mb4_bin")
    progress = models.JSONField(default=dict)
    is_redis_lost = models.BooleanField(_("Redis was lost"), default=False)
    accepts_dead_letters = models.BooleanField(_("dead letters accepted"), default=False)
    accepts_lost_commits = models.BooleanField(_("lost commits accepted"), default=False)
    waits_for = models.CharField(_("waits for"), max_length=300, blank=True)
    manifest = models.JSONField(_("manifest"), default=dict)
    started_at = models.DateTimeField(_("started at"))
    finished_at = models.DateTimeField(_("finished at"), null=True, blank=True)

    class Meta:
        verbose_name = _("archive")
        verbose_name_plural = _("archives")
        constraints = [
            models.UniqueConstraint(fields=["pool", "bucket_no"], name="archive_once_per_bucket"),
            models.CheckConstraint(condition=Q(stage__in=ArchiveStage.values), name="archive_stage_known"),
            models.CheckConstraint(
                condition=(Q(stage="DONE") & Q(finished_at__isnull=False))
                | (~Q(stage="DONE") & Q(finished_at__isnull=True)),
                name="archive_finished_when_done",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.pool_id}:{self.bucket_no} {self.stage}"


class BuyerArchive(models.Model):
    """Units a limit key held in a pool when its sale was archived, as Redis said."""

    pool = models.ForeignKey(
        "seckill.SalePool",
        on_delete=models.PROTECT,
        related_name="+",
        db_constraint=False,
        db_index=False,
        verbose_name=_("pool"),
    )
    bucket_no = models.PositiveSmallIntegerField(_("bucket"))
    limit_key = models.CharField(_("limit key"), max_length=64, db_collation="utf8mb4_bin")
    units = models.PositiveIntegerField(_("units"))

    class Meta:
        verbose_name = _("archived buyer")
        verbose_name_plural = _("archived buyers")
        constraints = [
            models.UniqueConstraint(fields=["pool", "bucket_no", "limit_key"], name="archived_buyer_once_per_bucket"),
            models.CheckConstraint(condition=Q(units__gte=1), name="archived_buyer_units_positive"),
        ]

    def __str__(self) -> str:
        return f"{self.pool_id} {self.limit_key}: {self.units}"


def require_no_archive(bucket: BucketRef) -> None:
    """Raise ``GateUnavailable`` where the bucket's archive has begun: Redis is told of no return any more.

    The gate is sealed only a step later, and only a step later would say so. The caller holds the bucket's lock,
    without which no archive begins.
    """
    if ArchiveRun.objects.filter(pool_id=bucket.pool_id, bucket_no=bucket.number).exists():
        raise GateUnavailable("the bucket is being archived")
