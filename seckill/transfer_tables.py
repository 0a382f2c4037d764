"""The table of transfers: units on their way from one bucket of an item to another."""

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _


class Transfer(models.Model):
    """Units that leave one bucket of an item for another: taken from the donor, moved in MySQL, given to the receiver.

    While it is open, ``donor_key`` and ``receiver_key`` name the two buckets whose next number of an adjustment it
    has. ``donor_epoch`` is the life of the donor's gate in which the units may be taken.
    """

    class State(models.TextChoices):
        """How far it is."""

        TAKING = "TAKING", _("being taken")
        GIVING = "GIVING", _("being given")
        DONE = "DONE", _("done")
        NOTHING = "NOTHING", _("nothing was there")

    item = models.ForeignKey(
        "seckill.SaleItem", on_delete=models.CASCADE, related_name="+", db_constraint=False, verbose_name=_("sale item")
    )
    pool_id = models.PositiveBigIntegerField()
    donor_no = models.PositiveSmallIntegerField(_("from bucket"))
    receiver_no = models.PositiveSmallIntegerField(_("to bucket"))
    units_wanted = models.PositiveIntegerField(_("units to be taken"))
    # What the receiver ought to have for somebody who has asked; 0 where nobody has.
    units_asked = models.PositiveIntegerField(default=0)
    units_moved = models.PositiveIntegerField(_("units moved"), default=0)
    donor_adj_no = models.PositiveIntegerField()
    receiver_adj_no = models.PositiveIntegerField()
    donor_epoch = models.PositiveIntegerField()
    state = models.CharField(_("state"), max_length=16, choices=State, default=State.TAKING)
    donor_key = models.CharField(max_length=40, unique=True, null=True)  # noqa: DJ001  NULL is closed
    receiver_key = models.CharField(max_length=40, unique=True, null=True)  # noqa: DJ001  NULL is closed
    created_at = models.DateTimeField(_("at"))
    finished_at = models.DateTimeField(_("finished at"), null=True)

    class Meta:
        verbose_name = _("transfer between buckets")
        verbose_name_plural = _("transfers between buckets")
        default_permissions = ("view",)
        indexes = [models.Index(fields=["finished_at"], name="transfer_open")]
        constraints = [
            models.CheckConstraint(condition=~Q(donor_no=F("receiver_no")), name="transfer_between_two_buckets"),
            models.CheckConstraint(
                condition=Q(units_wanted__gte=1) & Q(units_moved__lte=F("units_wanted")), name="transfer_moves_at_most"
            ),
            models.CheckConstraint(
                condition=Q(state="TAKING", units_moved=0, finished_at__isnull=True)
                | Q(state="GIVING", units_moved__gte=1, finished_at__isnull=True)
                | Q(state="DONE", units_moved__gte=1, finished_at__isnull=False)
                | Q(state="NOTHING", units_moved=0, finished_at__isnull=False),
                name="transfer_state_has_its_units",
            ),
            models.CheckConstraint(
                condition=Q(finished_at__isnull=True, donor_key__isnull=False, receiver_key__isnull=False)
                | Q(finished_at__isnull=False, donor_key__isnull=True, receiver_key__isnull=True),
                name="transfer_open_has_its_buckets",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.item_id}: {self.donor_no} → {self.receiver_no}, {self.units_moved}/{self.units_wanted}"

    @property
    def is_open(self) -> bool:
        """Whether half of it may be made."""
        return self.finished_at is None
