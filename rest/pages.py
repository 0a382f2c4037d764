"""Pages of a list: the rows after one that is named, so that each page costs the same and none repeats a row."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db.models import Model, Q, QuerySet
from rest_framework import serializers
from rest_framework.request import Request

from rest.fields import DigitsField

Row = TypeVar("Row", bound=Model)
Query = TypeVar("Query", bound="PageQuery")

PAGE_SIZE = 20
PAGE_SIZE_MAX = 100


class PageQuery(serializers.Serializer[None]):
    """What the query string of a list may say; lists with filters add theirs."""

    after = DigitsField(required=False, help_text="Id of the last row seen; the answer begins behind it.")
    page_size = DigitsField(min_value=1, max_value=PAGE_SIZE_MAX, default=PAGE_SIZE)


@dataclass(frozen=True, kw_only=True)
class Page:
    """Rows of one page; ``next_after`` begins the next one, None when there is none."""

    results: Sequence[Any]
    next_after: int | None


def read_query(query: type[PageQuery], request: Request) -> Mapping[str, Any]:
    """Check the query string. Raises ``ValidationError``, so that bad input is a 400."""
    given = query(data=request.query_params.dict())
    given.is_valid(raise_exception=True)
    checked: Mapping[str, Any] = given.validated_data
    return checked


def page_of(*, rows: QuerySet[Row], query: Mapping[str, Any], order_by: str = "pk", view: Callable[[Row], Any]) -> Page:
    """Cut one page: the rows behind ``after``, in the order of a column (``-`` in front: downwards) and the key.

    An ``after`` that is no row has nothing behind it.
    """
    size = int(query["page_size"])
    column, is_down = order_by.removeprefix("-"), order_by.startswith("-")
    if (after := query.get("after")) is not None:
        last = rows.model._default_manager.filter(pk=after).values_list(column, flat=True).first()  # noqa: SLF001
        rows = rows.none() if last is None else rows.filter(_behind(column, last, after, is_down=is_down))
    found = list(rows.order_by(order_by, "-pk" if is_down else "pk")[: size + 1])
    kept = found[:size]
    return Page(results=[view(row) for row in kept], next_after=kept[-1].pk if len(found) > size else None)


def _behind(column: str, last: Any, after: int, *, is_down: bool) -> Q:
    beyond = "lt" if is_down else "gt"
    if column == "pk":
        return Q(**{f"pk__{beyond}": after})
    return Q(**{f"{column}__{beyond}": last}) | Q(**{column: last, f"pk__{beyond}": after})
