"""Tables of the flash sales.

``Bucket`` and ``ItemBucket`` are the hot rows: no foreign key points at them, no admin form and
no ``save()`` writes them, and they are locked in one order: bucket, then its items by item id.
"""

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

import seckill.archive_tables  # noqa: F401  Django looks for tables here
from inventory.models import Sku
from seckill import (  # noqa: F401  further tables
    alert_tables,
    attempt_tables,
    change_tables,
    member_tables,
    sample_tables,
    silence_tables,
    transfer_tables,
)
from seckill.spreading import BUCKETS_MAX
from seckill.states import RefusalReason, ReservationState, SaleState


class FlashSale(models.Model):
    """A sale: a window in which its items can be bought."""

    name = models.CharField(_("name"), max_length=200)
    has_challenge = models.BooleanField(
        _("challenge before the ticket"),
        default=False,
        help_text=_("Each ticket costs the buyer's device a second of computing, so that bots pay before the rush."),
    )
    rules = models.TextField(_("rules"), blank=True, help_text=_("What buyers read before the sale opens."))
    opens_at = models.DateTimeField(_("opens at"))
    closes_at = models.DateTimeField(_("closes at"))
    pay_window_minutes = models.PositiveIntegerField(
        _("pay window (minutes)"), default=15, validators=[MinValueValidator(1)]
    )
    preheat_minutes = models.PositiveIntegerField(
        _("preheat before the opening (minutes)"),
        default=15,
        validators=[MinValueValidator(1)],
        help_text=_("A scheduled sale is brought into Redis by itself so long before it opens."),
    )
    state = models.CharField(_("state"), max_length=16, choices=SaleState, default=SaleState.DRAFT, editable=False)

    window_no = models.PositiveIntegerField(_("number of the window"), default=0, editable=False)

    class Meta:
        verbose_name = _("flash sale")
        verbose_name_plural = _("flash sales")
        constraints = [
            models.CheckConstraint(condition=Q(closes_at__gt=F("opens_at")), name="sale_closes_after_opening"),
            models.CheckConstraint(condition=Q(pay_window_minutes__gte=1), name="sale_pay_window_positive"),
            models.CheckConstraint(condition=Q(state__in=SaleState.values), name="sale_state_known"),
        ]

    def __str__(self) -> str:
        return self.name


class SalePool(models.Model):
    """Items of a sale that share one limit per buyer and one place in Redis."""

    sale = models.ForeignKey(FlashSale, on_delete=models.PROTECT, related_name="pools", verbose_name=_("sale"))
    name = models.CharField(_("name"), max_length=100, blank=True)
    limit_per_buyer = models.PositiveIntegerField(_("limit per buyer"), default=1, validators=[MinValueValidator(1)])
    max_queue = models.PositiveIntegerField(
        _("longest queue"),
        default=20_000,
        validators=[MinValueValidator(1)],
        help_text=_("Reservations that may wait for MySQL before buyers are told to come back in a moment."),
    )
    bucket_count = models.PositiveSmallIntegerField(
        _("buckets"),
        default=1,
        validators=[MinValueValidator(1), MaxValueValidator(BUCKETS_MAX)],
        help_text=_("Places in Redis over which the units are spread. One is enough for any pool below 10,000 units."),
    )

    class Meta:
        verbose_name = _("pool")
        verbose_name_plural = _("pools")
        constraints = [
            models.CheckConstraint(condition=Q(limit_per_buyer__gte=1), name="pool_limit_positive"),
            models.CheckConstraint(condition=Q(max_queue__gte=1), name="pool_max_queue_positive"),
            models.CheckConstraint(
                condition=Q(bucket_count__gte=1) & Q(bucket_count__lte=BUCKETS_MAX), name="pool_buckets_bounded"
            ),
        ]

    def __str__(self) -> str:
        return self.name or f"{self._meta.verbose_name} {self.pk}"


class SaleItem(models.Model):
    """One SKU in a sale, with its price and the units planned for it."""

    pool = models.ForeignKey(SalePool, on_delete=models.PROTECT, related_name="items", verbose_name=_("pool"))
    sku = models.ForeignKey(Sku, on_delete=models.PROTECT, related_name="+", verbose_name=_("SKU"))
    price = models.DecimalField(_("price"), max_digits=12, decimal_places=2, validators=[MinValueValidator(0)])
    units = models.PositiveIntegerField(_("units"), validators=[MinValueValidator(1)])
    is_paused = models.BooleanField(_("paused"), default=False, editable=False)
    # Paused by a stop of all sales, which takes back what it has paused and nothing else.
    stopped_at = models.DateTimeField(_("stopped at"), null=True, blank=True, editable=False)

    class Meta:
        verbose_name = _("sale item")
        verbose_name_plural = _("sale items")
        constraints = [
            models.UniqueConstraint(fields=["pool", "sku"], name="item_once_per_pool"),
            models.CheckConstraint(condition=Q(units__gte=1), name="item_units_positive"),
            models.CheckConstraint(condition=Q(price__gte=0), name="item_price_not_negative"),
        ]

    def __str__(self) -> str:
        return f"{self.sku} · {self.pool.sale}"


class Bucket(models.Model):
    """A shard of a pool, and the lock under which everything about it is written."""

    pool = models.ForeignKey(SalePool, on_delete=models.PROTECT, related_name="buckets")
    number = models.PositiveSmallIntegerField()
    epoch = models.PositiveIntegerField(default=0)
    run_id = models.CharField(max_length=64, blank=True)
    claim = models.CharField(max_length=32, blank=True)
    claim_until = models.DateTimeField(null=True, blank=True)
    adj_no = models.PositiveIntegerField(default=0)
    repair_no = models.PositiveIntegerField(default=0)

    class Meta:
        verbose_name = _("bucket")
        verbose_name_plural = _("buckets")
        constraints = [models.UniqueConstraint(fields=["pool", "number"], name="bucket_once_per_pool")]

    def __str__(self) -> str:
        return f"{self.pool_id}:{self.number}"


class ItemBucket(models.Model):
    """Units of one item in one bucket. Law 1 stands here as a constraint."""

    bucket = models.ForeignKey(Bucket, on_delete=models.PROTECT, related_name="+", db_constraint=False)
    item = models.ForeignKey(SaleItem, on_delete=models.PROTECT, related_name="buckets")
    allocated = models.PositiveIntegerField(default=0)
    sold = models.PositiveIntegerField(default=0)

    class Meta:
        verbose_name = _("units of an item")
        verbose_name_plural = _("units of items")
        constraints = [
            models.UniqueConstraint(fields=["bucket", "item"], name="item_bucket_once"),
            models.CheckConstraint(
                condition=Q(sold__gte=0) & Q(sold__lte=F("allocated")), name="item_bucket_never_oversold"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.item_id}: {self.sold}/{self.allocated}"


class Ticket(models.Model):
    """The right to try once. The signed form travels; this row lets open ones be listed.

    ``open_key`` names buyer and item and is unique: of two requests at once, one makes the ticket
    and the other finds it. A later ticket of the same buyer for the same item takes it over.
    """

    order_no = models.CharField(max_length=40, unique=True, db_collation="utf8mb4_bin")
    pool = models.ForeignKey(SalePool, on_delete=models.PROTECT, related_name="+", db_index=False)
    item = models.ForeignKey(SaleItem, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False)
    buyer = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", db_index=False)
    limit_key = models.CharField(max_length=64, db_collation="utf8mb4_bin")
    open_key = models.CharField(max_length=64, unique=True, null=True)  # noqa: DJ001  NULL is superseded
    issued_at = models.DateTimeField()

    class Meta:
        verbose_name = _("ticket")
        verbose_name_plural = _("tickets")
        indexes = [
            models.Index(fields=["pool", "buyer"], name="ticket_pool_buyer"),
            models.Index(fields=["pool", "limit_key"], name="ticket_pool_limit_key"),
            models.Index(fields=["buyer"], name="ticket_buyer"),
        ]

    def __str__(self) -> str:
        return self.order_no


class Reservation(models.Model):
    """The one fate of an order number (law 3), written before any unit goes back.

    A refused one is a tombstone: it fences off a late writer and needs no foreign key, so
    it can be written whatever is wrong with its buyer. ``units_owed`` is what the refusal or the
    return owes to Redis: the quantity, or 0 for a unit that never existed or left the sale. A
    returned one has ``owed_at`` from its return until Redis was told, then ``units_returned_at``.
    """

    order_no = models.CharField(_("order number"), max_length=40, unique=True, db_collation="utf8mb4_bin")
    pool = models.ForeignKey(
        SalePool,
        on_delete=models.PROTECT,
        related_name="+",
        db_constraint=False,
        db_index=False,
        verbose_name=_("pool"),
    )
    bucket_no = models.PositiveSmallIntegerField(_("bucket"))
    item = models.ForeignKey(
        SaleItem,
        on_delete=models.PROTECT,
        related_name="+",
        db_constraint=False,
        db_index=False,
        verbose_name=_("item"),
    )
    buyer = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        related_name="+",
        db_constraint=False,
        db_index=False,
        verbose_name=_("buyer"),
    )
    limit_key = models.CharField(_("limit key"), max_length=64, db_collation="utf8mb4_bin")
    quantity = models.PositiveIntegerField(_("quantity"))
    unit_price = models.DecimalField(_("unit price"), max_digits=12, decimal_places=2)
    epoch = models.PositiveIntegerField(_("epoch"))
    seq = models.PositiveBigIntegerField(_("sequence number"))
    state = models.CharField(_("state"), max_length=16, choices=ReservationState)
    reason = models.CharField(_("reason"), max_length=16, choices=RefusalReason, blank=True)
    units_owed = models.PositiveIntegerField(_("units owed to Redis"), default=0)
    owed_at = models.DateTimeField(_("owed since"), null=True)
    units_returned_at = models.DateTimeField(_("units returned at"), null=True)
    created_at = models.DateTimeField(_("at"))

    class Meta:
        verbose_name = _("reservation")
        verbose_name_plural = _("reservations")
        indexes = [
            models.Index(fields=["pool", "limit_key"], name="reservation_pool_limit_key"),
            models.Index(fields=["owed_at"], name="reservation_owed"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["pool", "bucket_no", "epoch", "seq"], name="reservation_one_per_sequence_number"
            ),
            models.CheckConstraint(condition=Q(quantity__gte=1), name="reservation_quantity_positive"),
            models.CheckConstraint(
                condition=Q(units_owed__lte=F("quantity")), name="reservation_owes_at_most_quantity"
            ),
            models.CheckConstraint(condition=Q(state__in=ReservationState.values), name="reservation_state_known"),
            models.CheckConstraint(
                condition=(Q(state="REFUSED") & ~Q(reason=""))
                | Q(state="SETTLED", reason="", units_owed=0)
                | Q(state="RETURNED", reason=""),
                name="reservation_refused_with_reason",
            ),
        ]

    def __str__(self) -> str:
        return self.order_no


class DeadLetter(models.Model):
    """A queue entry that could be neither read nor written, kept by its stream id.

    ``epoch`` is that of the queue it was in: after a rebuild the same id may be given again. A
    decision is committed before Redis is told of it, and concluded after.
    """

    class Decision(models.TextChoices):
        """What an operator had done with it."""

        REPLAY = "REPLAY", _("replayed")
        REFUSE = "REFUSE", _("refused")

    pool = models.ForeignKey(SalePool, on_delete=models.PROTECT, related_name="+", verbose_name=_("pool"))
    bucket_no = models.PositiveSmallIntegerField(_("bucket"))
    epoch = models.PositiveIntegerField(_("epoch"))
    stream_id = models.CharField(_("stream id"), max_length=40)
    fields = models.JSONField(_("fields"))
    error = models.CharField(_("error"), max_length=200)
    created_at = models.DateTimeField(_("at"))
    decision = models.CharField(_("decision"), max_length=16, choices=Decision, blank=True)
    decision_reason = models.CharField(_("why"), max_length=200, blank=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+", verbose_name=_("decided by")
    )
    decided_at = models.DateTimeField(_("decided at"), null=True)
    concluded_at = models.DateTimeField(_("concluded at"), null=True)

    class Meta:
        verbose_name = _("dead letter")
        verbose_name_plural = _("dead letters")
        permissions = [("decide_deadletter", "Can replay or refuse dead letters")]
        indexes = [models.Index(fields=["concluded_at"], name="dead_letter_open")]
        constraints = [
            models.CheckConstraint(
                condition=Q(decision="", decided_at__isnull=True, concluded_at__isnull=True)
                | Q(decision__in=["REPLAY", "REFUSE"], decided_at__isnull=False),
                name="dead_letter_concluded_after_decision",
            ),
            models.UniqueConstraint(
                fields=["pool", "bucket_no", "epoch", "stream_id"], name="dead_letter_once_per_entry_and_epoch"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.pool_id}:{self.bucket_no} {self.stream_id}"


class Incident(models.Model):
    """Something that should not have happened; at most one open one per kind and bucket.

    ``open_key`` is unique and set to NULL when the incident is resolved. ``told_count`` and
    ``told_units`` are what the last alert said: the next is due at ten times as many.
    """

    class Severity(models.TextChoices):
        """How soon somebody must look."""

        WARNING = "WARNING", _("warning")
        CRITICAL = "CRITICAL", _("critical")

    kind = models.CharField(_("kind"), max_length=40)
    severity = models.CharField(_("severity"), max_length=16, choices=Severity)
    pool = models.ForeignKey(SalePool, on_delete=models.PROTECT, related_name="+", verbose_name=_("pool"))
    bucket_no = models.PositiveSmallIntegerField(_("bucket"))
    detail = models.TextField(_("detail"))
    count = models.PositiveIntegerField(_("times seen"), default=1)
    units = models.PositiveIntegerField(_("units concerned"), default=0)
    told_count = models.PositiveIntegerField(default=1, editable=False)
    told_units = models.PositiveIntegerField(default=0, editable=False)
    open_key = models.CharField(max_length=80, unique=True, null=True, editable=False)  # noqa: DJ001  NULL is closed
    opened_at = models.DateTimeField(_("opened at"))
    last_seen_at = models.DateTimeField(_("last seen at"))
    resolved_at = models.DateTimeField(_("resolved at"), null=True, blank=True)

    class Meta:
        verbose_name = _("incident")
        verbose_name_plural = _("incidents")

    def __str__(self) -> str:
        return f"{self.kind} {self.pool_id}:{self.bucket_no}"


class ReconciliationRun(models.Model):
    """One comparison of MySQL and Redis for one bucket, with its numbers."""

    class Verdict(models.TextChoices):
        """What the comparison found."""

        BALANCED = "BALANCED", _("balanced")
        EXCESS = "EXCESS", _("Redis has too many")
        LEAK = "LEAK", _("Redis has too few")
        UNAVAILABLE = "UNAVAILABLE", _("Redis could not be asked")

    pool = models.ForeignKey(SalePool, on_delete=models.PROTECT, related_name="+", verbose_name=_("pool"))
    bucket_no = models.PositiveSmallIntegerField(_("bucket"))
    epoch = models.PositiveIntegerField(_("epoch"), default=0)
    adj_no = models.PositiveIntegerField(_("number of the last adjustment"), default=0)
    repair_no = models.PositiveIntegerField(_("number of the last repair"), default=0)
    verdict = models.CharField(_("verdict"), max_length=16, choices=Verdict)
    drift = models.IntegerField(_("drift"), default=0)
    numbers = models.JSONField(_("numbers"))
    members = models.JSONField(_("members"), default=dict)
    created_at = models.DateTimeField(_("at"))

    class Meta:
        verbose_name = _("reconciliation")
        verbose_name_plural = _("reconciliations")
        indexes = [models.Index(fields=["pool", "bucket_no", "created_at"], name="reconciliation_latest")]

    def __str__(self) -> str:
        return f"{self.pool_id}:{self.bucket_no} {self.verdict}"


class Repair(models.Model):
    """A correction of the units left in Redis, written before it is made and marked after."""

    class Outcome(models.TextChoices):
        """What became of it."""

        PLANNED = "PLANNED", _("planned")
        DONE = "DONE", _("done")
        OVERTAKEN = "OVERTAKEN", _("overtaken by something else")

    pool = models.ForeignKey(SalePool, on_delete=models.PROTECT, related_name="+", verbose_name=_("pool"))
    bucket_no = models.PositiveSmallIntegerField(_("bucket"))
    item = models.ForeignKey(SaleItem, on_delete=models.PROTECT, related_name="+", verbose_name=_("item"))
    epoch = models.PositiveIntegerField(_("epoch"))
    repair_no = models.PositiveIntegerField(_("number"))
    delta = models.IntegerField(_("units"))
    outcome = models.CharField(_("outcome"), max_length=16, choices=Outcome, default=Outcome.PLANNED)
    created_at = models.DateTimeField(_("at"))

    class Meta:
        verbose_name = _("repair")
        verbose_name_plural = _("repairs")
        indexes = [models.Index(fields=["pool", "bucket_no"], name="repair_bucket")]
        constraints = [models.CheckConstraint(condition=~Q(delta=0), name="repair_changes_something")]

    def __str__(self) -> str:
        return f"{self.pool_id}:{self.bucket_no} {self.item_id} {self.delta:+d}"


class RebuildRun(models.Model):
    """One rebuild, written with its claim and finished later: one that failed, or whose process died, is seen too.

    The automatic ones are counted, so that a bucket that keeps breaking stays shut.
    """

    class Outcome(models.TextChoices):
        """What became of it. ``DIED`` is found by the next one."""

        RUNNING = "RUNNING", _("under way")
        DONE = "DONE", _("done")
        FAILED = "FAILED", _("failed")
        DIED = "DIED", _("died")

    pool = models.ForeignKey(SalePool, on_delete=models.PROTECT, related_name="+", verbose_name=_("pool"))
    bucket_no = models.PositiveSmallIntegerField(_("bucket"))
    token = models.CharField(_("token"), max_length=16, blank=True)
    outcome = models.CharField(_("outcome"), max_length=16, choices=Outcome, default=Outcome.RUNNING)
    epoch = models.PositiveIntegerField(_("epoch"), default=0)
    is_automatic = models.BooleanField(_("automatic"))
    drained = models.PositiveIntegerField(_("entries brought into MySQL"), default=0)
    refused = models.PositiveIntegerField(_("of them refused"), default=0)
    parked = models.PositiveIntegerField(_("entries put aside"), default=0)
    error = models.CharField(_("error"), max_length=200, blank=True)
    created_at = models.DateTimeField(_("at"))
    finished_at = models.DateTimeField(_("finished at"), null=True)

    class Meta:
        verbose_name = _("rebuild")
        verbose_name_plural = _("rebuilds")
        indexes = [models.Index(fields=["pool", "bucket_no", "created_at"], name="rebuild_latest")]
        constraints = [
            models.CheckConstraint(
                condition=Q(outcome="RUNNING", finished_at__isnull=True)
                | Q(outcome__in=["DONE", "FAILED", "DIED"], finished_at__isnull=False),
                name="rebuild_finished_with_its_time",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.pool_id}:{self.bucket_no} epoch {self.epoch}"
