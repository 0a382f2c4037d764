"""Filters of the desk's lists that show one choice until somebody makes another; who searches searches everything."""

from collections.abc import Iterator
from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest


class FirstUnlessAsked(admin.SimpleListFilter):
    """The first of ``offered`` stands for no choice; ``narrow`` is given the choice, and never "all"."""

    offered: ClassVar[list[tuple[str, Any]]]
    parameter_name = "show"

    def narrow(self, queryset: QuerySet[Any], chosen: str) -> QuerySet[Any]:
        """Narrow the list down to what was chosen."""
        raise NotImplementedError

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Offer what the list has."""
        return self.offered

    def choices(self, changelist: Any) -> Iterator[Any]:
        """Leave out the admin's own "all": it would look like no choice."""
        for value, title in self.lookup_choices:
            query = changelist.get_query_string({self.parameter_name: value})
            yield {"selected": (self.value() or self.offered[0][0]) == value, "query_string": query, "display": title}

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Show the first choice; and everything to whoever searches and has chosen nothing."""
        chosen = self.value() or ("all" if request.GET.get("q") else self.offered[0][0])
        return queryset if chosen == "all" else self.narrow(queryset, chosen)
