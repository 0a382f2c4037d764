"""Law 10 and CASES 7: no form, admin page or API call can write a stock number, only ask for a change or move units."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.db import models
from django.http import HttpRequest
from django.test import RequestFactory
from drf_spectacular.generators import SchemaGenerator

from config import urls  # noqa: F401  registers every page
from inventory.models import Stock, StockMovement
from seckill.models import Bucket, ItemBucket, ReconciliationRun, Repair, Reservation

# Rows that services alone write: no form may have any of their columns.
HANDS_OFF = (Stock, StockMovement, Bucket, ItemBucket, Reservation, Repair, ReconciliationRun)

# Every number a form may write, and why it is no balance: a new one has to be thought about, and added here.
NUMBERS = {
    "inventory.sku.list_price",  # what a catalogue shows
    "inventory.stockadjustment.delta",  # a request, applied as a delta
    "seckill.flashsale.pay_window_minutes",  # before preheat
    "seckill.flashsale.preheat_minutes",  # before preheat
    "seckill.itemadjustment.delta",  # a request, applied as a delta
    "seckill.saleitem.price",  # before preheat
    "seckill.saleitem.units",  # before preheat: units planned, taken from the warehouse by preheat
    "seckill.salepool.limit_per_buyer",  # before preheat
    "seckill.salepool.max_queue",  # before preheat
    "seckill.salepool.bucket_count",  # before preheat
}
OURS = {"inventory", "orders", "seckill"}
NUMERIC = (models.IntegerField, models.DecimalField, models.FloatField)
BALANCES = {"on_hand", "allocated", "sold", "left", "queued", "stock", "units", "version"}


@pytest.fixture
def request_of_owner() -> HttpRequest:
    """A request of somebody who may do everything."""
    request = RequestFactory().get("/")
    request.user = User.objects.create_superuser("owner")
    return request


def writable(request: HttpRequest) -> Iterator[models.Field[Any, Any]]:
    """Every column that a form of the admin would write, inlines and editable lists included."""
    for model, page in admin.site._registry.items():
        if page.has_add_permission(request) or page.has_change_permission(request):
            yield from columns(model, page.get_form(request).base_fields)
            yield from columns(model, dict.fromkeys(page.list_editable))
        for inline in page.get_inline_instances(request):
            if inline.has_add_permission(request, None) or inline.has_change_permission(request):
                yield from columns(inline.model, inline.get_formset(request).form.base_fields)


def columns(model: type[models.Model], fields: Mapping[str, Any]) -> Iterator[models.Field[Any, Any]]:
    own = {field.name: field for field in model._meta.fields}
    yield from (own[name] for name in fields if name in own)


def test_no_page_of_the_admin_writes_a_balance(request_of_owner: HttpRequest) -> None:
    found = list(writable(request_of_owner))
    assert not {field.model for field in found} & set(HANDS_OFF)
    numbers = {field for field in found if isinstance(field, NUMERIC) and field.model._meta.app_label in OURS}
    assert {f"{field.model._meta.label_lower}.{field.name}" for field in numbers} <= NUMBERS


def test_no_page_of_the_admin_writes_how_a_change_was_decided(request_of_owner: HttpRequest) -> None:
    names = {field.name for field in writable(request_of_owner) if field.model._meta.app_label in OURS}
    assert not names & {"state", "decided_by", "requested_by", "is_by_one_person", "adj_no", "window_no", "open_key"}


def test_no_call_of_the_api_takes_a_balance() -> None:
    """Every name in the body of every call that the schema describes."""
    schema = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    bodies = [
        call["requestBody"] for path in schema["paths"].values() for call in path.values() if "requestBody" in call
    ]
    assert bodies
    names = {name for body in bodies for name in properties(body, schema)}
    assert "quantity" in names
    assert not names & BALANCES


def properties(node: Any, schema: Any) -> Iterator[str]:
    """Names of all properties below a node of the schema, references followed."""
    if isinstance(node, list):
        for part in node:
            yield from properties(part, schema)
    elif isinstance(node, dict):
        if "$ref" in node:
            name = node["$ref"].rpartition("/")[2]
            yield from properties(schema["components"]["schemas"][name], schema)
        yield from node.get("properties", {})
        for part in node.values():
            yield from properties(part, schema)
