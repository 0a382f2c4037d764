"""What workers count: batches, how long entries waited, how soon units come back."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from orders.models import Order
from orders.services import cancel_order
from seckill.incidents import Severity, open_incident, resolve_incident
from seckill.reconciliation import reconcile_bucket
from seckill.returns import return_closed_orders
from seckill.settlement import settle_bucket
from tests.support.scrape import TOKEN, Samples, scrape, value
from tests.support.shop import buy, make_tickets, open_sale


@pytest.fixture(autouse=True)
def token(settings: Settings) -> None:
    settings.METRICS_TOKEN = TOKEN


def gained(before: Samples, after: Samples, name: str, **labels: Any) -> float:
    return value(after, name, **labels) - value(before, name, **labels)


def test_batches_returns_and_verdicts_are_counted() -> None:
    shop = open_sale(units=5)
    numbers = [buy(ticket) for ticket in make_tickets(shop, 3)]
    before = scrape()
    settle_bucket(bucket=shop.bucket, clock=lambda: timezone.now() + timedelta(seconds=7))
    buyer_id = Order.objects.values_list("buyer_id", flat=True).get(number=numbers[0])
    cancel_order(number=numbers[0], buyer_id=buyer_id, now=timezone.now() - timedelta(seconds=4))
    return_closed_orders(clock=timezone.now)
    reconcile_bucket(bucket=shop.bucket, clock=timezone.now)
    open_incident(kind="phantom", severity=Severity.WARNING, bucket=shop.bucket, detail="", now=timezone.now())
    resolve_incident(kind="phantom", bucket=shop.bucket, now=timezone.now())
    after = scrape()

    assert gained(before, after, "seckill_settled_entries_total", fate="settled") == 3
    assert gained(before, after, "seckill_settle_batch_entries_count") == 1
    assert gained(before, after, "seckill_settle_batch_entries_sum") == 3
    assert 0 < gained(before, after, "seckill_settle_batch_seconds_sum") < 2
    assert 7 <= gained(before, after, "seckill_settle_lag_seconds_sum") < 9
    assert gained(before, after, "seckill_return_seconds_count") == 1
    assert 4 <= gained(before, after, "seckill_return_seconds_sum") < 6
    assert gained(before, after, "seckill_reconciliations_total", verdict="balanced") == 1
    assert gained(before, after, "seckill_incident_events_total", kind="phantom", event="opened") == 1
    assert gained(before, after, "seckill_incident_events_total", kind="phantom", event="closed") == 1
