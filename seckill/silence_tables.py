"""Table of servers that do not answer at present."""

from django.db import models


class StockSilence(models.Model):
    """Since when a stock Redis has not answered the sweep; there is no row while it does."""

    server = models.CharField(max_length=40, unique=True)
    since = models.DateTimeField()
    seen_at = models.DateTimeField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.server}: {self.since:%Y-%m-%d %H:%M:%S}"
