"""Tables of the accounts; the accounts themselves are ``settings.AUTH_USER_MODEL``."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _


class Block(models.Model):
    """Somebody who gets no ticket, token or account: an account, or all of a network's addresses.

    ``network`` is in CIDR form (``203.0.113.7/32``). A ticket issued before stays valid.
    """

    account = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        related_name="+",
        null=True,
        blank=True,
        verbose_name=_("account"),
    )
    network = models.CharField(
        _("network"),
        max_length=43,
        blank=True,
        help_text=_("An address (203.0.113.7) or a network (203.0.113.0/24, 2001:db8::/64)."),
    )
    reason = models.CharField(_("reason"), max_length=200, help_text=_("For colleagues; the one blocked is not told."))
    until = models.DateTimeField(_("until"), null=True, blank=True, help_text=_("Empty: until somebody removes it."))
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        related_name="+",
        null=True,
        editable=False,
        verbose_name=_("by"),
    )
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    class Meta:
        verbose_name = _("block")
        verbose_name_plural = _("block list")
        constraints = [
            models.CheckConstraint(
                condition=(Q(account__isnull=False) & Q(network="")) | (Q(account__isnull=True) & ~Q(network="")),
                name="block_account_or_network",
                violation_error_message=_("Name either an account or a network."),
            ),
        ]

    def __str__(self) -> str:
        return self.network or str(self.account)


class ExternalIdentity(models.Model):
    """An account as a log-in service outside knows it: one account per subject of a service."""

    provider = models.CharField(_("service"), max_length=40)
    subject = models.CharField(_("subject"), max_length=190, db_collation="utf8mb4_bin")
    account = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", verbose_name=_("account")
    )
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    class Meta:
        verbose_name = _("external identity")
        verbose_name_plural = _("external identities")
        constraints = [
            models.UniqueConstraint(fields=["provider", "subject"], name="external_identity_once_per_service"),
            models.CheckConstraint(condition=~Q(provider="") & ~Q(subject=""), name="external_identity_named"),
        ]

    def __str__(self) -> str:
        return f"{self.provider}:{self.subject}"
