"""The side bar of the operators' desk, for one person: the pages he may see, with the numbers of what waits there."""

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from config.desk import GROUPS, INBOX, INCIDENTS, LETTERS, REFUNDS
from seckill.inbox import waiting_count
from seckill.waiting import COUNTED_MAX, Waiting, what_waits


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """The side bar: of each group the pages that somebody may see."""
    waiting, requests = what_waits(), waiting_count(by=request.user)
    numbers = {INCIDENTS: waiting.incidents, LETTERS: waiting.letters, REFUNDS: waiting.refunds_due, INBOX: requests}
    found = []
    for title, pages in GROUPS:
        allowed = [page for page in pages if any(map(request.user.has_perm, page[3].split("|"))) or not page[3]]
        if allowed:
            items = [{**_entry(page), **_badge(page[0], numbers, waiting)} for page in allowed]
            found.append({"title": title, "separator": True, "collapsible": False, "items": items})
    return found


def _entry(page: tuple[Any, str, str, str]) -> dict[str, Any]:
    title, icon, address, needs = page
    name, _mark, query = address.partition("?")
    link = f"{reverse(name)}?{query}" if query else reverse(name)
    return {"title": title, "icon": icon, "link": link, "needs": needs}


def _badge(title: Any, numbers: Mapping[Any, int], waiting: Waiting) -> Mapping[str, str]:
    """The number beside a page's title, where something waits there; red for what is critical."""
    number = numbers.get(title, 0)
    if not number:
        return {}
    variant = "danger" if title is INCIDENTS and waiting.is_critical else "warning"
    return {"badge": f"{COUNTED_MAX}+" if number >= COUNTED_MAX else f"{number}", "badge_variant": variant}
