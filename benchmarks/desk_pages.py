"""Every page of the operator's desk, opened as a person would: lists, searches, filters, orderings, single rows.

Each is measured: seconds, statements, bytes, and what the two Redis servers were asked. Needs Django set up.
"""

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.db import connection, models
from django.http import HttpRequest
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import NoReverseMatch, URLPattern, URLResolver, get_resolver, reverse

from benchmarks.desk_data import DeskData
from benchmarks.redis_log import commands_of

QUERIES_MAX = 20
SECONDS_MAX = 1.0
# A page that shows every buyer is found by its weight as well.
BYTES_MAX = 2_000_000
READS_OF_MEMBERS = frozenset({"HGETALL", "HSCAN", "HKEYS", "HVALS", "HRANDFIELD", "DUMP", "SORT"})
# What opens a transaction or asks about the session is no query of the page.
HOUSEKEEPING = ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE SAVEPOINT", "SET SESSION", "SET SQL_AUTO_IS_NULL")
CHOICES_MAX = 30


@dataclass(kw_only=True)
class Measured:
    """What one page cost."""

    name: str
    url: str
    status: int
    seconds: float
    queries: int
    size: int
    is_file: bool = False
    members_read: list[str] = field(default_factory=list)
    slowest: str = ""

    @property
    def faults(self) -> list[str]:
        """What is wrong with it, in words."""
        found = []
        if self.status >= 400 and self.status != HTTPStatus.METHOD_NOT_ALLOWED:
            found.append(f"status {self.status}")
        if self.members_read:
            found.append(f"reads buyers: {self.members_read[:2]}")
        if self.is_file:
            return found
        if self.queries > QUERIES_MAX:
            found.append(f"{self.queries} queries")
        if self.size > BYTES_MAX:
            found.append(f"{self.size} bytes")
        return found

    @property
    def is_slow(self) -> bool:
        """Whether somebody waits for it; a file is read while it is sent, as long as it is."""
        return self.seconds >= SECONDS_MAX and not self.is_file


def open_all(*, client: Client, data: DeskData, choices_max: int = CHOICES_MAX) -> Iterator[Measured]:
    """Open every page of the desk; of each list's filters and orderings so many."""
    for name, url in [*_own_pages(data), *_admin_pages(client, choices_max=choices_max)]:
        yield measure(client=client, name=name, url=url, data=data)


def measure(*, client: Client, name: str, url: str, data: DeskData) -> Measured:
    """Open one page; one that was slow once more, for then nobody listens and somebody has opened it before."""
    members = set(data.bucket.keys[2:4])
    begun = time.monotonic()
    with CaptureQueriesContext(connection) as queries, commands_of("stock") as commands:
        response = client.get(url)
        size = _size(response)
    # At once: the next request empties the log.
    asked = [query for query in queries.captured_queries if not query["sql"].startswith(HOUSEKEEPING)]
    seconds = time.monotonic() - begun
    if seconds >= SECONDS_MAX and not response.streaming:
        begun = time.monotonic()
        client.get(url)
        seconds = time.monotonic() - begun
    slowest = max(asked, key=lambda query: float(query["time"]), default={"sql": "", "time": "0"})
    return Measured(
        name=name,
        url=url,
        status=response.status_code,
        seconds=round(seconds, 3),
        queries=len(asked),
        size=size,
        is_file=response.streaming,
        members_read=[
            " ".join(words)[:120] for words in commands if words[0] in READS_OF_MEMBERS and members & set(words)
        ],
        slowest=f"{slowest['time']} s: {slowest['sql'][:300]}",
    )


def _size(response: Any) -> int:
    return sum(len(part) for part in response.streaming_content) if response.streaming else len(response.content)


def _admin_pages(client: Client, *, choices_max: int) -> Iterator[tuple[str, str]]:
    """The pages of every registered table."""
    yield "index", reverse("admin:index")
    for model, page in sorted(admin.site._registry.items(), key=lambda pair: pair[0]._meta.label):
        label = model._meta.label
        if label.startswith("sandbox"):
            continue
        address = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        queries = _list_queries(client=client, model=model, page=page, choices_max=choices_max)
        for what, query in queries:
            yield f"{label} {what}", address + (f"?{query}" if query else "")
        yield from _row_pages(client=client, model=model, page=page)


def _list_queries(*, client: Client, model: Any, page: Any, choices_max: int) -> Iterator[tuple[str, str]]:
    """A list as it opens, searched, filtered by each choice, ordered by each column, and its second page."""
    request = _request(client, "/admin/")
    changelist = page.get_changelist_instance(request)
    yield "list", ""
    if changelist.paginator.num_pages > 1:
        yield "page 2", "p=2"
    if page.get_search_fields(request):
        for word in _words(model=model, page=page, request=request):
            yield f"search {word}", urlencode({"q": word})
    for spec in changelist.filter_specs:
        for choice in list(spec.choices(changelist))[:choices_max]:
            query = str(choice.get("query_string", "")).removeprefix("?")
            if query:
                yield f"filter {query}", query
    sortable = changelist.sortable_by
    ordered = [
        (place, column)
        for place, column in enumerate(changelist.list_display)
        if changelist.get_ordering_field(column) and (sortable is None or column in sortable)
    ]
    for place, column in ordered[:choices_max]:
        yield f"order {column}", f"o={place}"
        yield f"order -{column}", f"o=-{place}"
    if page.date_hierarchy:
        yield "year", urlencode({f"{page.date_hierarchy}__year": 2026})


def _words(*, model: Any, page: Any, request: HttpRequest) -> list[str]:
    """What somebody may search for: nothing that is there, and what stands in the last row."""
    words = ["nowhere-to-be-found"]
    row = model._default_manager.order_by("-pk").first()
    for name in page.get_search_fields(request):
        value: Any = row
        for part in str(name).lstrip("^=@").removesuffix("__exact").split("__"):
            value = None if value is None or part in {"exact", "iexact"} else getattr(value, part, None)
            if isinstance(value, models.Manager):
                value = value.first()
        if value and len(words) < 4:
            words.append(str(value))
    return words


def _row_pages(*, client: Client, model: Any, page: Any) -> Iterator[tuple[str, str]]:
    """One row's pages: its own, its history, its deletion; the form for another one; what its fields offer."""
    label, name = model._meta.label, f"admin:{model._meta.app_label}_{model._meta.model_name}"
    request = _request(client, "/admin/")
    if page.has_add_permission(request):
        with suppress(NoReverseMatch):
            yield f"{label} add", reverse(f"{name}_add")
    row = model._default_manager.order_by("pk").first()
    if row is not None:
        yield f"{label} row", reverse(f"{name}_change", args=[row.pk])
        yield f"{label} history", reverse(f"{name}_history", args=[row.pk])
        if page.has_delete_permission(request, row):
            yield f"{label} delete", reverse(f"{name}_delete", args=[row.pk])
    for field_name in page.get_autocomplete_fields(request):
        query = {"app_label": model._meta.app_label, "model_name": model._meta.model_name, "field_name": field_name}
        for term in ("", "crowd-0000"):
            yield (
                f"{label} offers {field_name} {term}",
                f"{reverse('admin:autocomplete')}?{urlencode({**query, 'term': term})}",
            )


def _request(client: Client, path: str) -> HttpRequest:
    request = RequestFactory().get(path)
    request.user = client.get(reverse("admin:index")).wsgi_request.user
    return request


def _own_pages(data: DeskData) -> Iterator[tuple[str, str]]:
    """The desk's pages that belong to no table: all addresses below /admin/ whose parameters are known."""
    known = {
        "sale_id": data.sale_id,
        "pool_id": data.pool_id,
        "item_id": data.item_id,
        "sku_id": data.sku_id,
        "order_no": data.order_no,
        "buyer_id": data.buyer_id,
    }
    for pattern in _named(get_resolver()):
        names = set(pattern.pattern.converters)
        if str(pattern.name).startswith("desk_") and names <= set(known):
            yield str(pattern.name), reverse(str(pattern.name), kwargs={name: known[name] for name in names})


def _named(resolver: URLResolver) -> Iterator[URLPattern]:
    patterns: list[URLPattern | URLResolver] = resolver.url_patterns
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            if pattern.namespace is None:
                yield from _named(pattern)
        elif pattern.name:
            yield pattern
