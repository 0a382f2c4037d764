"""Where an operator goes from an incident: one page each, the one on which he does what its advice says."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django_stubs_ext import StrOrPromise

from seckill.models import Incident

# An order number in an incident's detail.
ORDER_NO = re.compile(r"\border ([0-9A-Za-z-]{8,40})\b")


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """What the button says, and where it leads."""

    label: StrOrPromise
    address: str


@dataclass(frozen=True, kw_only=True)
class Place:
    """What an address is made of: the incident with its pool, and the first item of that."""

    incident: Incident
    item_id: int | None


def remedy_for(*, incident: Incident, item_id: int | None) -> Remedy:
    """Return where to go for an incident; ``item_id`` is the first item of its pool. Reads nothing else."""
    label, address = REMEDIES.get(incident.kind, WATCH)
    return Remedy(label=label, address=address(Place(incident=incident, item_id=item_id)))


def _monitor(place: Place) -> str:
    return reverse("desk_monitor_sale", args=[place.incident.pool.sale_id])


def _books(place: Place) -> str:
    if place.item_id is None:
        return _monitor(place)
    return reverse("desk_audit_item", args=[place.item_id])


def _sale(place: Place) -> str:
    return reverse("admin:seckill_flashsale_change", args=[place.incident.pool.sale_id])


def _listed(table: str, **where: str) -> Callable[[Place], str]:
    def address(place: Place) -> str:
        query = {"pool__id__exact": str(place.incident.pool_id), **where}
        return f"{reverse(f'admin:seckill_{table}_changelist')}?{urlencode(query)}"

    return address


def _changes(_place: Place) -> str:
    return f"{reverse('desk_inbox')}?list=all"


def story_of(query: object) -> str:
    """Where is told what became of an order number, or of a buyer's purchases."""
    return f"{reverse('desk_explain')}?{urlencode({'q': query})}"


def _order(place: Place) -> str:
    if found := ORDER_NO.search(place.incident.detail):
        return story_of(found[1])
    return _listed("reservation")(place)


Way = tuple[StrOrPromise, Callable[[Place], str]]

WATCH: Way = (_("Watch the sale"), _monitor)
COMPARE: Way = (_("See the books and compare"), _books)
REBUILDS: Way = (_("See the rebuilds"), _listed("rebuildrun"))
ARCHIVES: Way = (_("See the archive"), _listed("archiverun"))

REMEDIES: Mapping[str, Way] = {
    "drift": COMPARE,
    "marks_differ": COMPARE,
    "receipts_differ": COMPARE,
    "books_differ": COMPARE,
    "returns_stuck": COMPARE,
    "phantom": (_("See the refused orders"), _listed("reservation", reason__exact="phantom")),
    "order_differs": (_("What became of it"), _order),
    "row_refused": (_("What became of it"), _order),
    "dead_letter": (_("Decide the dead letters"), _listed("deadletter")),
    "redis_lost": REBUILDS,
    "queue_forked": REBUILDS,
    "commits_lost": REBUILDS,
    "keeps_breaking": REBUILDS,
    "archive_blocked": ARCHIVES,
    "archive_differs": ARCHIVES,
    "change_stuck": (_("See the approved changes"), _changes),
    "not_preheated": (_("Open the sale"), _sale),
}
