"""Lists of the admin over tables of any size: nothing is counted to its end, joined before it is cut, or sorted whole.

What the admin does by itself is made for thousands of rows. On a million it counts them all twice, joins the tables of
the shown columns before it takes the first hundred rows (and MySQL then sorts the whole join), looks for ``%word%`` in
each of them, and offers to sort by columns without an index.
"""

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.contrib.admin import ModelAdmin, ShowFacets
from django.contrib.admin.views.main import ORDER_VAR, ChangeList
from django.core.paginator import Paginator
from django.db.models import PROTECT, Model, Q, QuerySet, UniqueConstraint
from django.http import HttpRequest

# Whoever wants to look further back than so many rows searches or filters.
ROWS_REACHED_MAX = 5_000
# Of one word, so many rows per searched column.
ROWS_FOUND_MAX = 500
# Of what stands in a deletion's way, so many rows per table are counted.
PROTECTORS_COUNTED_MAX = 100
# How a search field's mark reads as a lookup that an index can answer.
LOOKUPS = {"^": "istartswith", "=": "iexact"}

if TYPE_CHECKING:
    Base = ModelAdmin[Any]
    List = ChangeList
else:
    Base = List = object


class ReachedPaginator(Paginator[Any]):
    """Pages of the first few thousand rows: the count stops there, however many there are."""

    @cached_property
    def count(self) -> int:
        """How many rows can be reached."""
        rows = self.object_list
        if isinstance(rows, QuerySet):
            return int(rows.order_by()[:ROWS_REACHED_MAX].count())
        return len(rows)


class CutFirst(List):
    """A list that takes its rows first and fetches what they refer to after, one statement for each reference."""

    def apply_select_related(self, qs: QuerySet[Any]) -> QuerySet[Any]:
        """Fetch by ``IN`` what would be joined."""
        if isinstance(self.list_select_related, bool):
            references = {field.name for field in self.lookup_opts.concrete_fields if field.is_relation}
            return qs.prefetch_related(*references.intersection(map(str, self.list_display)))
        return qs.prefetch_related(*self.list_select_related)

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> Any:
        """Sort by one column and then by key, in one direction: what an index that has only the column can answer."""
        ordering = super().get_ordering(request, queryset)
        first = ordering[0] if ordering else None
        if ORDER_VAR not in request.GET or not isinstance(first, str):
            return ordering
        name = first.lstrip("-")
        if self.sortable_by is not None and name not in self.sortable_by:
            return [*self.model_admin.get_ordering(request)] or ["-pk"]  # somebody has typed it
        if name in unique_columns(self.model):
            return [first]
        return [first, "-pk" if first.startswith("-") else "pk"]

    def get_results(self, request: HttpRequest) -> None:
        """Let the page look up at once what it shows of all these rows."""
        super().get_results(request)
        self.result_list = list(self.result_list)
        page: Any = self.model_admin
        page.prepare_rows(self.result_list)


class BoundedList(Base):
    """Mixin of the pages of tables that stay small beside larger ones: catalogue, sales, rules."""

    show_full_result_count = False
    show_facets = ShowFacets.NEVER
    paginator = ReachedPaginator
    list_per_page = 50
    list_max_show_all = 50

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """Cut first, whatever else the list does."""
        return type("BoundedChangeList", (CutFirst, super().get_changelist(request, **kwargs)), {})

    def prepare_rows(self, rows: list[Any]) -> None:
        """Do what the columns need once for all rows of a page; nothing, unless a page says so."""

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Say what stands in the way by its number; the admin would read and list every row of it."""
        if in_the_way := protectors(model=self.model, keys=[obj.pk for obj in objs]):
            return [], {}, set(), in_the_way
        return super().get_deleted_objects(objs, request)


class LargeList(BoundedList):
    """Mixin of the pages of tables that grow with every sale: searched and sorted by indexes alone."""

    def get_sortable_by(self, request: HttpRequest) -> Any:
        """Offer only what an index has in order, unless the page says otherwise."""
        if self.sortable_by is not None:
            return list(self.sortable_by)
        return [name for name in map(str, self.get_list_display(request)) if name in ordered_columns(self.model)]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Find what begins with, or is, the words: each column by its own index, and then the rows by their keys."""
        names = self.get_search_fields(request)
        word = search_term.strip()
        if not names or not word:
            return queryset, False
        found: set[Any] = set()
        for name in names:
            rows = self.model._default_manager.filter(Q(**{lookup_of(str(name)): word})).order_by()  # noqa: SLF001
            found |= set(rows.values_list("pk", flat=True)[:ROWS_FOUND_MAX])
        return queryset.filter(pk__in=found), False


def protectors(*, model: type[Model], keys: Iterable[Any]) -> list[str]:
    """What refers to some rows and keeps them from being deleted: each table once, with its number up to a bound."""
    found = []
    wanted = list(keys)
    for relation in model._meta.get_fields(include_hidden=True):  # noqa: SLF001  the collector's own way
        if not relation.auto_created or relation.concrete or getattr(relation, "on_delete", None) is not PROTECT:
            continue
        other: Any = relation.related_model
        rows = other._base_manager.filter(**{f"{relation.field.name}__in": wanted})  # type: ignore[union-attr]  # noqa: SLF001
        if count := rows.order_by()[:PROTECTORS_COUNTED_MAX].count():
            more = "+" if count == PROTECTORS_COUNTED_MAX else ""
            found.append(f"{other._meta.verbose_name_plural}: {count}{more}")  # noqa: SLF001
    return found


def lookup_of(name: str) -> str:
    """Return the lookup of a search field; one without a mark is looked for by its beginning."""
    if name[0] in LOOKUPS:
        return f"{name[1:]}__{LOOKUPS[name[0]]}"
    return name if name.endswith("exact") else f"{name}__istartswith"


def ordered_columns(model: type[Model]) -> frozenset[str]:
    """The fields of a table that an index has in order, with the key behind them."""
    opts = model._meta  # noqa: SLF001  the admin's own way
    alone = {f.name for f in opts.concrete_fields if getattr(f, "db_index", False)}
    indexed = {index.fields[0] for index in opts.indexes if index.fields and list(index.fields[1:]) in ([], ["id"])}
    return unique_columns(model) | alone | indexed


def unique_columns(model: type[Model]) -> frozenset[str]:
    """The fields of a table of which no two rows have the same."""
    opts = model._meta  # noqa: SLF001  as above
    rules = {
        rule.fields[0] for rule in opts.constraints if isinstance(rule, UniqueConstraint) and len(rule.fields) == 1
    }
    return frozenset(rules | {f.name for f in opts.concrete_fields if f.primary_key or f.unique})
