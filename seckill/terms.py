"""The terms of law 7 in words, in the order of its equation, and where each of them is counted."""

from dataclasses import dataclass

from django.utils.translation import gettext_lazy as _
from django_stubs_ext import StrOrPromise


@dataclass(frozen=True, kw_only=True)
class Term:
    """One term: its field in ``ItemBalance``, its name, who counts it, and what it means."""

    field: str
    name: StrOrPromise
    store: StrOrPromise
    meaning: StrOrPromise


ALLOCATED = Term(
    field="allocated", name=_("allocated"), store="MySQL", meaning=_("units given to the sale, adjustments included")
)
TERMS_SHOWN = (
    Term(field="sold", name=_("sold"), store="MySQL", meaning=_("settled and not returned")),
    Term(field="left", name=_("left"), store="Redis", meaning=_("can be bought right now")),
    Term(
        field="in_flight",
        name=_("in flight"),
        store=_("Redis, not yet MySQL"),
        meaning=_("reserved, waiting in the queue for settlement"),
    ),
    Term(
        field="owed",
        name=_("owed to Redis"),
        store=_("MySQL, not yet Redis"),
        meaning=_("refused or returned in MySQL; Redis has not been told yet"),
    ),
    Term(
        field="adjusting",
        name=_("adjustment under way"),
        store=_("one of the two"),
        meaning=_("half of a change by hand or of a transfer"),
    ),
)
