"""The live picture as the monitor's script reads it: plain numbers and codes, words are the page's."""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.urls import reverse

from seckill.advice import advice_for
from seckill.detail_words import in_readers_words
from seckill.history import Series
from seckill.models import Incident
from seckill.monitor import BucketPicture, ItemPicture, Picture
from seckill.stage_times import StageBreakdown

Json = dict[str, Any]


def picture_json(picture: Picture) -> Json:
    """One look at a sale, with its sums."""
    return {
        "at": picture.at.isoformat(),
        "phase": picture.phase.value,
        "opens_at": picture.sale.opens_at.isoformat(),
        "closes_at": picture.sale.closes_at.isoformat(),
        "sampled_at": picture.sampled_at and picture.sampled_at.isoformat(),
        "orders_counted_at": picture.orders_counted_at and picture.orders_counted_at.isoformat(),
        "sums": _sums(picture),
        "items": [_item(item) for item in picture.items],
        "buckets": [_bucket(bucket) for bucket in picture.buckets],
        "incidents": [_incident(incident) for incident in picture.incidents],
    }


def series_json(series: Series) -> Json:
    """Lines of the charts."""
    return vars(series) | {"begins_at": series.begins_at.isoformat()}


def stages_json(breakdown: StageBreakdown) -> Json:
    """Where a purchase's time goes: the average of the sampled ones, and bounds of each stage."""
    return {
        "sampled": breakdown.sampled,
        "one_in": settings.STAGE_SAMPLE_ONE_IN,
        "seconds": round((breakdown.until - breakdown.since).total_seconds()),
        "whole_us": round(breakdown.whole_us),
        "stages": [
            {
                "stage": time.stage.value,
                "own_us": round(time.own_us),
                "share": round(time.share, 4),
                "p50_us": time.p50_us,
                "p99_us": time.p99_us,
            }
            for time in breakdown.stages
        ],
    }


def _sums(picture: Picture) -> Json:
    items, buckets = picture.items, picture.buckets
    waits = [bucket.pulse.oldest_ms for bucket in buckets if bucket.pulse is not None]
    return {
        "left": _sum(items, lambda item: item.seen.left),
        "queued": _sum(items, lambda item: item.seen.queued),
        "sold": sum(item.seen.sold for item in items),
        "allocated": sum(item.allocated for item in items),
        "accepted": _sum(items, lambda item: item.seen.accepted),
        "sold_out": _sum(items, lambda item: item.seen.sold_out),
        "refused": _sum(items, lambda item: item.seen.refused),
        "accepted_rate": _sum(items, lambda item: item.rates.accepted),
        "sold_out_rate": _sum(items, lambda item: item.rates.sold_out),
        "refused_rate": _sum(items, lambda item: item.rates.refused),
        "queue_length": sum(b.pulse.queue_length for b in buckets if b.pulse is not None) if waits else None,
        "oldest_ms": max(waits, default=None),
        "orders": {
            state: sum(item.orders.get(state, 0) for item in items) for state in (items[0].orders if items else {})
        },
        "drift": sum(bucket.check.drift for bucket in buckets if bucket.check is not None),
    }


def _sum(items: tuple[ItemPicture, ...], number_of: Callable[[ItemPicture], float | None]) -> float | None:
    """Add up what all items say; None where one of them does not know."""
    numbers = [number for item in items if (number := number_of(item)) is not None]
    return round(sum(numbers), 1) if items and len(numbers) == len(items) else None


def _item(item: ItemPicture) -> Json:
    return {
        "id": item.id,
        "allocated": item.allocated,
        "is_paused": item.is_paused,
        **vars(item.seen),
        **{f"{name}_rate": rate for name, rate in vars(item.rates).items()},
        "orders": item.orders,
    }


def _bucket(picture: BucketPicture) -> Json:
    pulse, check = picture.pulse, picture.check
    return {
        "id": str(picture.bucket),
        "gate": _gate(picture),
        "queue_length": pulse and pulse.queue_length,
        "max_queue": pulse and pulse.max_queue,
        "oldest_ms": pulse and pulse.oldest_ms,
        "members": pulse and pulse.members,
        "verdict": check and check.verdict,
        "drift": check and check.drift,
        "checked_at": check and check.at.isoformat(),
    }


def _gate(picture: BucketPicture) -> str:
    if picture.pulse is None:
        return "missing"
    if picture.pulse.is_sealed:
        return "sealed"
    return "frozen" if picture.pulse.is_frozen else "open"


def _incident(incident: Incident) -> Json:
    return {
        "kind": incident.kind,
        "what": str(advice_for(incident.kind).what),
        "severity": incident.severity,
        "bucket": f"{incident.pool_id}:{incident.bucket_no}",
        "detail": in_readers_words(incident.detail)[:300],
        "count": incident.count,
        "opened_at": incident.opened_at.isoformat(),
        "url": reverse("admin:seckill_incident_change", args=[incident.pk]),
    }
