"""The table of the comparison by member: how far each bucket's round has come."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class MemberRound(models.Model):
    """Where the round over a bucket's members stands; one row per bucket.

    ``version`` is in every update's WHERE: of two runs at once, one counts. ``suspects`` are marks
    that were seen too high, with the numbers and the time of the first look. ``clean_since`` is when
    the last finished round began, if it found nothing.
    """

    pool = models.ForeignKey("seckill.SalePool", on_delete=models.PROTECT, related_name="+", verbose_name=_("pool"))
    bucket_no = models.PositiveSmallIntegerField(_("bucket"))
    epoch = models.PositiveIntegerField(default=0)
    version = models.PositiveIntegerField(default=0)
    began_at = models.DateTimeField(null=True)
    cursor = models.JSONField(default=dict)
    found = models.PositiveIntegerField(default=0)
    suspects = models.JSONField(default=dict)
    clean_since = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("round over the members")
        verbose_name_plural = _("rounds over the members")
        constraints = [models.UniqueConstraint(fields=["pool", "bucket_no"], name="member_round_once_per_bucket")]

    def __str__(self) -> str:
        return f"{self.pool_id}:{self.bucket_no} epoch {self.epoch}"
