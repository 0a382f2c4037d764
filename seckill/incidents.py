"""Incidents: opened once, counted while they last, closed when the cause is gone.

Whoever is to be told of it is told by an alert, one when an incident opens, rises or is closed,
never one per run. It has risen when its severity has, or when it was seen, or concerns units, ten
times as often or many as the last alert said. The alert is a row written in the same transaction.
"""

import logging
from datetime import datetime
from functools import partial

from django.db import transaction
from django.db.models import F

from metrics.definitions import INCIDENT_EVENTS
from seckill.alert_tables import Alert
from seckill.alerts import nudge, write_alert
from seckill.gate.keys import BucketRef
from seckill.models import Incident

logger = logging.getLogger(__name__)

Severity = Incident.Severity
Event = Alert.Event

# An incident that has grown by less than this says nothing new.
RISE_FACTOR = 10
RANKS = {Severity.WARNING: 0, Severity.CRITICAL: 1}


def open_incident(
    *, kind: str, severity: Incident.Severity, bucket: BucketRef, detail: str, now: datetime, units: int = 0
) -> None:
    """Open an incident of a kind for a bucket, or count the one that is open.

    ``units`` is how many units it concerns, where that is known. Whoever is to know is told when it
    is new or has risen, once the transaction around is committed.
    """
    open_key = f"{kind}:{bucket}"
    with transaction.atomic():
        # An UPDATE first: it locks the row, if there is one, and counts in one statement.
        if not _count(open_key=open_key, detail=detail, units=units, now=now):
            incident, is_new = Incident.objects.get_or_create(
                open_key=open_key,
                defaults={
                    "kind": kind,
                    "severity": severity,
                    "pool_id": bucket.pool_id,
                    "bucket_no": bucket.number,
                    "detail": detail,
                    "units": units,
                    "told_units": units,
                    "opened_at": now,
                    "last_seen_at": now,
                },
            )
            # Whoever lost the race to open it does not count it as well: of several losers, each holding a shared
            # lock on the winner's row, all but one would end as deadlocks. The next look counts.
            if is_new:
                _tell(incident=incident, event=Event.OPENED, now=now)
            return
        _rise(incident=Incident.objects.get(open_key=open_key), severity=severity, now=now)


def resolve_incident(*, kind: str, bucket: BucketRef, now: datetime) -> None:
    """Close the open incident of a kind for a bucket, if there is one."""
    open_key = f"{kind}:{bucket}"
    if not Incident.objects.filter(open_key=open_key).exists():
        return
    with transaction.atomic():
        incident = Incident.objects.select_for_update().filter(open_key=open_key).first()
        if incident is None:
            return
        Incident.objects.filter(pk=incident.pk).update(open_key=None, resolved_at=now)
        _tell(incident=incident, event=Event.CLOSED, now=now)


def open_incidents_of(*, bucket: BucketRef) -> list[Incident]:
    """Return a bucket's open incidents, the oldest first."""
    rows = Incident.objects.filter(pool_id=bucket.pool_id, bucket_no=bucket.number, open_key__isnull=False)
    return list(rows.order_by("opened_at", "pk"))


def open_buckets(*, kind: str) -> set[BucketRef]:
    """Return the buckets that have an open incident of a kind."""
    rows = Incident.objects.filter(kind=kind, open_key__isnull=False).values_list("pool_id", "bucket_no")
    return {BucketRef(pool_id=pool_id, number=number) for pool_id, number in rows}


def _count(*, open_key: str, detail: str, units: int, now: datetime) -> bool:
    open_ones = Incident.objects.filter(open_key=open_key)
    return bool(open_ones.update(count=F("count") + 1, last_seen_at=now, detail=detail, units=units))


def _rise(*, incident: Incident, severity: Incident.Severity, now: datetime) -> None:
    """Tell of an incident again if it has risen; its row is locked. What was critical once stays it."""
    is_worse = RANKS[severity] > RANKS[Severity(incident.severity)]
    is_more = incident.count >= RISE_FACTOR * incident.told_count
    is_bigger = incident.units >= RISE_FACTOR * max(1, incident.told_units)
    if not (is_worse or is_more or is_bigger):
        return
    incident.severity = severity if is_worse else incident.severity
    Incident.objects.filter(pk=incident.pk).update(
        severity=incident.severity,
        told_count=incident.count,
        told_units=max(incident.units, incident.told_units),
    )
    _tell(incident=incident, event=Event.RISEN, now=now)


def _tell(*, incident: Incident, event: Alert.Event, now: datetime) -> None:
    """Write the alert for all channels, and once that is committed, the log, and have it sent."""
    write_alert(incident=incident, event=event, now=now)
    transaction.on_commit(partial(_log, event, str(incident), incident.detail))
    transaction.on_commit(INCIDENT_EVENTS.labels(incident.kind, event.value.lower()).inc)
    transaction.on_commit(nudge)


def _log(event: Alert.Event, name: str, detail: str) -> None:
    level = logging.WARNING if event is Event.CLOSED else logging.ERROR
    logger.log(level, "incident %s %s: %s", name, event.value.lower(), detail)
