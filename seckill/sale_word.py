"""The state of a sale in one word, for an operator."""

from datetime import datetime

from django.db import models
from django.utils.translation import gettext_lazy as _

from seckill.models import FlashSale, SaleItem
from seckill.states import SalePhase, SaleState, sale_phase


class SaleWord(models.TextChoices):
    """The phases of a sale, and a pause of all its items."""

    DRAFT = "draft", _("draft")
    SCHEDULED = "scheduled", _("scheduled")
    PREHEATED = "preheated", _("preheated")
    LIVE = "live", _("live")
    PAUSED = "paused", _("paused")
    ENDED = "ended", _("ended")
    ARCHIVING = "archiving", _("archiving")
    ARCHIVED = "archived", _("archived")


def word_of_phase(*, phase: SalePhase, items: int, items_paused: int) -> SaleWord:
    """A sale that could sell, now or soon, is paused where every one of its items is."""
    if phase in {SalePhase.PREHEATED, SalePhase.LIVE} and 0 < items == items_paused:
        return SaleWord.PAUSED
    return SaleWord(phase.value)


def phase_of_sale(*, sale: FlashSale, now: datetime) -> SalePhase:
    """The phase of a sale, whatever is paused in it."""
    return sale_phase(state=SaleState(sale.state), opens_at=sale.opens_at, closes_at=sale.closes_at, now=now)


def word_of_sale(*, sale: FlashSale, now: datetime) -> SaleWord:
    """Read how many items are paused, and say the word."""
    paused = list(SaleItem.objects.filter(pool__sale=sale).values_list("is_paused", flat=True))
    phase = phase_of_sale(sale=sale, now=now)
    return word_of_phase(phase=phase, items=len(paused), items_paused=sum(paused))
