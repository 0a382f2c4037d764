"""What may be changed in which phase of a sale, and how: the one table that the admin asks and shows."""

from collections.abc import Mapping

from django.db import models
from django.utils.translation import gettext_lazy as _

from seckill.states import SalePhase, SaleState


class What(models.TextChoices):
    """Parts of a sale that somebody might want to change."""

    NAME = "name", _("name, rules, challenge")
    PAY_WINDOW = "pay_window", _("pay window")
    OPENING = "opening", _("opening")
    CLOSING = "closing", _("end")
    LIMIT = "limit", _("limit per buyer, longest queue, buckets")
    SKU = "sku", _("which SKUs")
    PRICE = "price", _("price")
    UNITS = "units", _("units")
    PAUSE = "pause", _("pause and resume")
    END = "end", _("end now")
    WITHDRAW = "withdraw", _("withdraw, while nothing is reserved")


class How(models.TextChoices):
    """How it is changed."""

    FREELY = "freely", _("freely")
    BY_APPROVAL = "by_approval", _("by a request that a second person approves")
    AT_ONCE = "at_once", _("at once, with a reason")
    NEVER = "never", _("not at all")


FORM = frozenset({What.NAME, What.PAY_WINDOW, What.OPENING, What.CLOSING, What.LIMIT, What.SKU, What.PRICE, What.UNITS})
BY_TWO = dict.fromkeys((What.CLOSING, What.UNITS), How.BY_APPROVAL)
CHANGEABLE: Mapping[SalePhase, Mapping[What, How]] = {
    SalePhase.DRAFT: dict.fromkeys(FORM, How.FREELY),
    SalePhase.SCHEDULED: dict.fromkeys(FORM, How.FREELY),
    SalePhase.PREHEATED: {
        What.OPENING: How.BY_APPROVAL,
        **BY_TWO,
        What.PAUSE: How.AT_ONCE,
        What.WITHDRAW: How.AT_ONCE,
    },
    SalePhase.LIVE: {**BY_TWO, **dict.fromkeys((What.PAUSE, What.END, What.WITHDRAW), How.AT_ONCE)},
    SalePhase.ENDED: BY_TWO,
    SalePhase.ARCHIVING: {},
    SalePhase.ARCHIVED: {},
}


def how_changed(*, what: What, phase: SalePhase) -> How:
    """How a part of a sale is changed in a phase."""
    return CHANGEABLE[phase].get(what, How.NEVER)


def phases_for(*, what: What, how: How) -> frozenset[SalePhase]:
    """The phases in which a part is changed in a way."""
    return frozenset(phase for phase in SalePhase if how_changed(what=what, phase=phase) is how)


def changeable_table() -> list[tuple[What, list[How]]]:
    """The whole table, a line per part and a column per phase, to be shown."""
    return [(what, [how_changed(what=what, phase=phase) for phase in SalePhase]) for what in What]


# The states in which the forms of a sale, its pools and its items may be saved; their phases have the same names.
EDITABLE = frozenset(
    state
    for state in SaleState
    if all(how_changed(what=what, phase=SalePhase(state.value.lower())) is How.FREELY for what in FORM)
)
