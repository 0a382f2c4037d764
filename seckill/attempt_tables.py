"""Table of the attempts at settling, by which a worker's death in the middle of one is noticed."""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _


class SettleAttempt(models.Model):
    """How settlement of one bucket fares; one row per bucket, written by ``seckill.attempts`` alone.

    ``token`` stands while an attempt is under way: one that the next attempt finds is a dead
    worker's. ``deaths`` are those in a row with the same ``head`` of the queue, its first stream id;
    ``size_max`` is how many entries a batch may have since. ``busy_since`` is when the bucket's lock
    could not be had any more.
    """

    pool = models.ForeignKey("seckill.SalePool", on_delete=models.PROTECT, related_name="+", verbose_name=_("pool"))
    bucket_no = models.PositiveSmallIntegerField(_("bucket"))
    token = models.CharField(max_length=16, blank=True)
    head = models.CharField(max_length=40)
    deaths = models.PositiveSmallIntegerField(_("deaths in a row"), default=0)
    size_max = models.PositiveIntegerField(_("entries per batch"))
    busy_since = models.DateTimeField(null=True)
    started_at = models.DateTimeField(_("started at"))

    class Meta:
        verbose_name = _("attempt at settling")
        verbose_name_plural = _("attempts at settling")
        constraints = [
            models.UniqueConstraint(fields=["pool", "bucket_no"], name="settle_attempt_once_per_bucket"),
            models.CheckConstraint(condition=Q(size_max__gte=1), name="settle_attempt_size_positive"),
        ]

    def __str__(self) -> str:
        return f"{self.pool_id}:{self.bucket_no}"
