"""States of sales and reservations, with the one table of transitions each."""

from collections.abc import Mapping
from datetime import datetime

from django.db import models
from django.utils.translation import gettext_lazy as _


class SaleState(models.TextChoices):
    """What is stored of a sale; live and ended are derived from its window."""

    DRAFT = "DRAFT", _("draft")
    SCHEDULED = "SCHEDULED", _("scheduled")
    PREHEATED = "PREHEATED", _("preheated")
    ARCHIVING = "ARCHIVING", _("archiving")
    ARCHIVED = "ARCHIVED", _("archived")


SALE_TRANSITIONS: Mapping[SaleState, frozenset[SaleState]] = {
    SaleState.DRAFT: frozenset({SaleState.SCHEDULED, SaleState.PREHEATED}),
    SaleState.SCHEDULED: frozenset({SaleState.DRAFT, SaleState.PREHEATED}),
    SaleState.PREHEATED: frozenset({SaleState.DRAFT, SaleState.ARCHIVING}),
    SaleState.ARCHIVING: frozenset({SaleState.ARCHIVED}),
    SaleState.ARCHIVED: frozenset(),
}


class SalePhase(models.TextChoices):
    """One word for an operator or a buyer: where a sale is right now."""

    DRAFT = "draft", _("draft")
    SCHEDULED = "scheduled", _("scheduled")
    PREHEATED = "preheated", _("preheated")
    LIVE = "live", _("live")
    ENDED = "ended", _("ended")
    ARCHIVING = "archiving", _("archiving")
    ARCHIVED = "archived", _("archived")


def sale_phase(*, state: SaleState, opens_at: datetime, closes_at: datetime, now: datetime) -> SalePhase:
    """Derive the phase: a preheated sale is live while ``opens_at <= now < closes_at``."""
    if state is not SaleState.PREHEATED:
        return SalePhase(state.value.lower())
    if now < opens_at:
        return SalePhase.PREHEATED
    return SalePhase.LIVE if now < closes_at else SalePhase.ENDED


class ReservationState(models.TextChoices):
    """The fate of an order number in MySQL."""

    SETTLED = "SETTLED", _("settled")
    REFUSED = "REFUSED", _("refused")
    RETURNED = "RETURNED", _("returned")


RESERVATION_TRANSITIONS: Mapping[ReservationState, frozenset[ReservationState]] = {
    ReservationState.SETTLED: frozenset({ReservationState.RETURNED}),
    ReservationState.REFUSED: frozenset(),
    ReservationState.RETURNED: frozenset(),
}


class RefusalReason(models.TextChoices):
    """Why MySQL refused what Redis had reserved."""

    LIMIT_REACHED = "limit_reached", _("the limit per buyer was reached")
    PHANTOM = "phantom", _("there was no such unit")
    INVALID = "invalid", _("the order could not be written")
