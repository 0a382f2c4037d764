"""Tables of the inventory: what is sold, how much of it stands in the warehouse, and the ledger of every change."""

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from inventory.changes import ManualChange

# No count of units may grow beyond this; a typing error of more digits is refused.
UNITS_MAX = 1_000_000_000

# One of our static files, or a picture elsewhere by https: nothing that a page could run.
PICTURE_FORM = r"^(https://[^\s\"'<>]+|[A-Za-z0-9_-][A-Za-z0-9_./-]*\.(svg|png|jpg|jpeg|webp|avif))\Z"


class Product(models.Model):
    """A product (SPU): what a shopper would call one thing."""

    name = models.CharField(_("name"), max_length=200)
    description = models.TextField(_("description"), blank=True)
    picture = models.CharField(
        _("picture"),
        max_length=300,
        blank=True,
        validators=[RegexValidator(PICTURE_FORM, _("Name a static file or an https address."))],
        help_text=_("A static file such as pictures/phone.svg, or an https address."),
    )
    is_active = models.BooleanField(_("active"), default=True)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    class Meta:
        verbose_name = _("product")
        verbose_name_plural = _("products")

    def __str__(self) -> str:
        return self.name


class Sku(models.Model):
    """A sellable variant of a product (size, colour, memory)."""

    product = models.ForeignKey(Product, on_delete=models.PROTECT, related_name="skus", verbose_name=_("product"))
    code = models.CharField(_("code"), max_length=64, unique=True)
    name = models.CharField(_("variant"), max_length=200)
    list_price = models.DecimalField(
        _("list price"), max_digits=12, decimal_places=2, validators=[MinValueValidator(0)]
    )

    class Meta:
        verbose_name = _("SKU")
        verbose_name_plural = _("SKUs")
        constraints = [models.CheckConstraint(condition=Q(list_price__gte=0), name="sku_list_price_not_negative")]

    def __str__(self) -> str:
        return f"{self.code} {self.name}"


class Stock(models.Model):
    """Units of a SKU in the warehouse, not given to any sale.

    Written only by ``inventory.services``, each time together with a ledger row;
    ``version`` counts the writes and lets one without a row lock notice another.
    """

    sku = models.OneToOneField(Sku, on_delete=models.PROTECT, primary_key=True, verbose_name=_("SKU"))
    on_hand = models.PositiveIntegerField(_("on hand"), default=0)
    version = models.PositiveIntegerField(_("version"), default=0)

    class Meta:
        verbose_name = _("stock")
        verbose_name_plural = _("stocks")
        constraints = [models.CheckConstraint(condition=Q(on_hand__gte=0), name="stock_on_hand_not_negative")]

    def __str__(self) -> str:
        return f"{self.sku_id}: {self.on_hand}"


class StockMovement(models.Model):
    """One line of the append-only ledger.

    ``account`` names whose balance the units change: ``warehouse`` or one a sale
    opened. The sum of an account's units is its balance, always; ``reference`` is
    unique, so that what is retried is written once.
    """

    class Kind(models.TextChoices):
        """Why units moved."""

        RECEIPT = "RECEIPT", _("goods received")
        ALLOCATION = "ALLOCATION", _("allocated to a sale")
        SALE = "SALE", _("sold")
        RETURN = "RETURN", _("returned")
        ADJUSTMENT = "ADJUSTMENT", _("adjusted by hand")
        LEFTOVER = "LEFTOVER", _("left over from a sale")
        WRITE_OFF = "WRITE_OFF", _("written off")

    sku = models.ForeignKey(Sku, on_delete=models.PROTECT, related_name="movements", verbose_name=_("SKU"))
    account = models.CharField(_("account"), max_length=64)
    kind = models.CharField(_("kind"), max_length=16, choices=Kind)
    units = models.IntegerField(_("units"))
    reference = models.CharField(_("reference"), max_length=96, unique=True)
    reason = models.CharField(_("reason"), max_length=200, blank=True)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, verbose_name=_("by")
    )
    created_at = models.DateTimeField(_("created at"))

    class Meta:
        verbose_name = _("stock movement")
        verbose_name_plural = _("stock movements")
        indexes = [
            models.Index(fields=["account", "kind"], name="movement_account_kind"),
            models.Index(fields=["kind"], name="movement_kind"),
            # The books are added up from the index alone.
            models.Index(fields=["account", "sku", "units"], name="movement_books"),
        ]
        constraints = [models.CheckConstraint(condition=~Q(units=0), name="movement_units_not_zero")]

    def __str__(self) -> str:
        return f"{self.account} {self.units:+d} ({self.reference})"


class StockAdjustment(ManualChange):
    """A change of what the warehouse has of a SKU, as a delta; two of them add up, whoever asked for them."""

    sku = models.ForeignKey(Sku, on_delete=models.PROTECT, related_name="+", verbose_name=_("SKU"))
    delta = models.IntegerField(
        _("units (+ or −)"), validators=[MinValueValidator(-UNITS_MAX), MaxValueValidator(UNITS_MAX)]
    )
    on_hand_after = models.PositiveIntegerField(_("on hand after it"), null=True, blank=True, editable=False)
    ledger_after = models.IntegerField(_("ledger after it"), null=True, blank=True, editable=False)

    class Meta(ManualChange.Meta):
        verbose_name = _("warehouse adjustment")
        verbose_name_plural = _("warehouse adjustments")
        default_permissions = ("add", "view")
        permissions = [("approve_stockadjustment", _("Can approve or reject warehouse adjustments of others"))]
        constraints = [
            *ManualChange.Meta.constraints,
            models.CheckConstraint(condition=~Q(delta=0), name="stockadjustment_changes_something"),
        ]

    def __str__(self) -> str:
        return f"{self.sku}: {self.delta:+d}"
