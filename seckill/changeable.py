"""What may be changed in which state of a sale, and how: the one table that the admin asks and shows."""

from collections.abc import Mapping

from django.db import models
from django.utils.translation import gettext_lazy as _

from seckill.states import SaleState


class What(models.TextChoices):
    """Parts of a sale that somebody might want to change."""

    NAME = "name", _("name, rules, challenge")
    PAY_WINDOW = "pay_window", _("pay window")
    WINDOW = "window", _("opening and end")
    LIMIT = "limit", _("limit per buyer, longest queue")
    SKU = "sku", _("which SKUs")
    PRICE = "price", _("price")
    UNITS = "units", _("units")
    PAUSE = "pause", _("pause and resume")
    END = "end", _("end now")


class How(models.TextChoices):
    """How it is changed."""

    FREELY = "freely", _("freely")
    BY_APPROVAL = "by_approval", _("by a request that a second person approves")
    AT_ONCE = "at_once", _("at once, with a reason")
    NEVER = "never", _("not at all")


FORM = frozenset({What.NAME, What.PAY_WINDOW, What.WINDOW, What.LIMIT, What.SKU, What.PRICE, What.UNITS})
ON_SALE: Mapping[What, How] = {
    What.WINDOW: How.BY_APPROVAL,
    What.UNITS: How.BY_APPROVAL,
    What.PAUSE: How.AT_ONCE,
    What.END: How.AT_ONCE,
}
CHANGEABLE: Mapping[SaleState, Mapping[What, How]] = {
    SaleState.DRAFT: dict.fromkeys(FORM, How.FREELY),
    SaleState.SCHEDULED: dict.fromkeys(FORM, How.FREELY),
    SaleState.PREHEATED: ON_SALE,
    SaleState.ARCHIVING: {},
    SaleState.ARCHIVED: {},
}
# The states in which the forms of a sale, its pools and its items may be saved.
EDITABLE = frozenset(
    state for state, changes in CHANGEABLE.items() if all(changes.get(what) is How.FREELY for what in FORM)
)


def how_changed(*, what: What, state: SaleState) -> How:
    """How a part of a sale is changed in a state."""
    return CHANGEABLE[state].get(what, How.NEVER)


def changeable_table() -> list[tuple[What, list[How]]]:
    """The whole table, a line per part and a column per state, to be shown."""
    return [(what, [how_changed(what=what, state=state) for state in SaleState]) for what in What]
