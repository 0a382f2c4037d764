"""Tables of changes by hand of what is on sale: units of an item, and the window of a sale."""

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from inventory.changes import ChangeState, ManualChange
from inventory.models import UNITS_MAX


class Counterpart(models.TextChoices):
    """Where units come from, or go to."""

    WAREHOUSE = "WAREHOUSE", _("the warehouse")
    OUTSIDE = "OUTSIDE", _("outside (new goods, or written off)")


class ItemAdjustment(ManualChange):
    """A change of the units of an item on sale, numbered within its bucket, one at a time.

    ``open_key`` names the bucket while the change has its number (``adj_no``) and is not finished: half of
    it may be made. ``epoch`` is the life of the gate in which the script may make it.
    """

    item = models.ForeignKey(
        "seckill.SaleItem", on_delete=models.PROTECT, related_name="adjustments", verbose_name=_("sale item")
    )
    bucket_no = models.PositiveSmallIntegerField(_("bucket"), default=0, editable=False)
    delta = models.IntegerField(
        _("units (+ or −)"), validators=[MinValueValidator(-UNITS_MAX), MaxValueValidator(UNITS_MAX)]
    )
    counterpart = models.CharField(_("from / to"), max_length=16, choices=Counterpart, default=Counterpart.WAREHOUSE)
    adj_no = models.PositiveIntegerField(_("number"), null=True, blank=True, editable=False)
    epoch = models.PositiveIntegerField(_("epoch"), null=True, blank=True, editable=False)
    open_key = models.CharField(
        _("key while it is under way"), max_length=40, unique=True, null=True, blank=True, editable=False
    )
    units_possible = models.IntegerField(_("possible instead"), null=True, blank=True, editable=False)
    reconciliation = models.ForeignKey(
        "seckill.ReconciliationRun",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        editable=False,
        related_name="+",
        verbose_name=_("reconciliation after it"),
    )

    class Meta(ManualChange.Meta):
        verbose_name = _("adjustment of units on sale")
        verbose_name_plural = _("adjustments of units on sale")
        default_permissions = ("add", "view")
        permissions = [("approve_itemadjustment", _("Can approve or reject adjustments of units on sale of others"))]
        constraints = [
            *ManualChange.Meta.constraints,
            models.CheckConstraint(condition=~Q(delta=0), name="itemadjustment_changes_something"),
            models.CheckConstraint(
                condition=Q(counterpart__in=Counterpart.values), name="itemadjustment_counterpart_known"
            ),
            models.CheckConstraint(
                condition=Q(open_key__isnull=True)
                | Q(state=ChangeState.APPROVED, adj_no__isnull=False, epoch__isnull=False),
                name="itemadjustment_open_has_number",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.item}: {self.delta:+d}"


class WindowChange(ManualChange):
    """Another opening and closing for a sale that is preheated, numbered within the sale."""

    sale = models.ForeignKey(
        "seckill.FlashSale", on_delete=models.PROTECT, related_name="window_changes", verbose_name=_("sale")
    )
    opens_at = models.DateTimeField(_("opens at"))
    closes_at = models.DateTimeField(_("closes at"))
    window_no = models.PositiveIntegerField(_("number"), null=True, blank=True, editable=False)
    opened_at_before = models.DateTimeField(_("opened at, before"), null=True, blank=True, editable=False)
    closed_at_before = models.DateTimeField(_("closed at, before"), null=True, blank=True, editable=False)

    class Meta(ManualChange.Meta):
        verbose_name = _("change of a sale's window")
        verbose_name_plural = _("changes of sales' windows")
        default_permissions = ("add", "view")
        permissions = [("approve_windowchange", _("Can approve or reject window changes of others"))]
        constraints = [
            *ManualChange.Meta.constraints,
            models.CheckConstraint(condition=Q(closes_at__gt=F("opens_at")), name="windowchange_closes_after_opening"),
        ]

    def __str__(self) -> str:
        return f"{self.sale}: {self.opens_at:%Y-%m-%d %H:%M} – {self.closes_at:%Y-%m-%d %H:%M}"
