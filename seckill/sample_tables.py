"""The table of the samples: what was to be seen of each item on sale, second by second, for an operator's charts."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class ItemSample(models.Model):
    """One look at an item on sale. Nothing is decided by it, and it is thrown away after a day.

    Counts are totals since the preheat, so that a sample that is missing loses nothing: the next one holds its share.
    ``left``, ``queued`` and ``oldest_ms`` are NULL where Redis could not be asked. Without a foreign key, so that a
    sample keeps nobody from deleting a draft.
    """

    item_id = models.PositiveBigIntegerField()
    at = models.DateTimeField()
    left = models.PositiveIntegerField(null=True)
    queued = models.PositiveIntegerField(null=True)
    oldest_ms = models.PositiveBigIntegerField(null=True)
    sold = models.PositiveIntegerField(default=0)
    accepted = models.PositiveBigIntegerField(default=0)
    sold_out = models.PositiveBigIntegerField(default=0)
    refused = models.PositiveBigIntegerField(default=0)
    settled = models.PositiveBigIntegerField(default=0)
    waited_ms = models.PositiveBigIntegerField(default=0)

    class Meta:
        verbose_name = _("sample of an item")
        verbose_name_plural = _("samples of items")
        indexes = [
            models.Index(fields=["item_id", "at"], name="item_sample_item"),
            models.Index(fields=["at"], name="item_sample_at"),
        ]

    def __str__(self) -> str:
        return f"{self.item_id} {self.at:%H:%M:%S}"
