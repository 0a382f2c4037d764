"""Alerts: the outbox. Written with the incident's change, sent by a task afterwards, at least once.

A delivery is claimed by a short transaction (its next attempt is put off, so that nobody else takes
it), sent without any transaction, then marked. Whoever dies in between leaves a claim that runs out.
"""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import QuerySet

from seckill import channels, wakeups
from seckill.alert_tables import Alert, AlertDelivery
from seckill.channels import Message
from seckill.models import Incident

logger = logging.getLogger(__name__)

State = AlertDelivery.State

# Ten attempts with pauses of 6 s, 12 s, ... 1,536 s: 51 minutes, longer than most things are restarted for.
ATTEMPTS_MAX = 10
FIRST_PAUSE_SECONDS = 6
# As many as one run can send within its claim, though every channel hangs until its timeout.
DELIVERIES_PER_CLAIM = 10
CLAIM_SECONDS = 120
CLAIMS_PER_RUN_MAX = 20


def write_alert(*, incident: Incident, event: Alert.Event, now: datetime) -> None:
    """Write down that an incident is to be told of, by every channel there is. Sends nothing."""
    alert = Alert.objects.create(
        incident=incident,
        event=event,
        severity=incident.severity,
        detail=incident.detail,
        count=incident.count,
        units=incident.units,
        created_at=now,
    )
    AlertDelivery.objects.bulk_create(
        AlertDelivery(alert=alert, channel=channel, due_at=now) for channel in channels.configured()
    )


def nudge() -> None:
    """Have the alerts sent at once, if there is anybody to send them to; beat comes every few seconds anyway."""
    if channels.configured():
        wakeups.request_alerts()


def deliver_due(*, clock: Callable[[], datetime]) -> int:
    """Send what is due; return how many arrived. A channel that fails holds up no other."""
    sent = 0
    for _ in range(CLAIMS_PER_RUN_MAX):
        claimed = _claim(now=clock())
        sent += sum(_deliver(delivery=delivery, clock=clock) for delivery in claimed)
        if len(claimed) < DELIVERIES_PER_CLAIM:
            break
    return sent


def resend(*, delivery_ids: Sequence[int], now: datetime) -> int:
    """Try deliveries that were given up from the beginning; return how many."""
    given_up = AlertDelivery.objects.filter(pk__in=delivery_ids, state=State.GIVEN_UP)
    return given_up.update(state=State.DUE, attempts=0, due_at=now)


def _claim(*, now: datetime) -> list[AlertDelivery]:
    """Take what is due and put its next attempt off; others skip what is being claimed."""
    with transaction.atomic(durable=True):
        due = AlertDelivery.objects.select_for_update(skip_locked=True).filter(state=State.DUE, due_at__lte=now)
        claimed = list(due.order_by("due_at", "pk")[:DELIVERIES_PER_CLAIM])
        for delivery in claimed:
            delivery.attempts += 1
            AlertDelivery.objects.filter(pk=delivery.pk).update(
                attempts=delivery.attempts, due_at=now + timedelta(seconds=CLAIM_SECONDS)
            )
    return claimed


def _deliver(*, delivery: AlertDelivery, clock: Callable[[], datetime]) -> bool:
    alert = Alert.objects.select_related("incident__pool__sale").get(pk=delivery.alert_id)
    try:
        channels.send(channel=delivery.channel, message=_message(alert=alert, delivery=delivery))
    except Exception as error:  # noqa: BLE001  isolation point: a hook may raise anything, and is tried again
        _put_off(delivery=delivery, error=error, now=clock())
        return False
    _claimed(delivery).update(state=State.SENT, sent_at=clock(), error="")
    return True


def _put_off(*, delivery: AlertDelivery, error: Exception, now: datetime) -> None:
    """Plan the next attempt, or give up, which the admin and the log show."""
    words = f"{type(error).__name__}: {error}"[:200]
    if delivery.attempts >= ATTEMPTS_MAX:
        _claimed(delivery).update(state=State.GIVEN_UP, error=words)
        logger.error("alert %s is given up after %s attempts: %s", delivery, delivery.attempts, words)
        return
    pause = FIRST_PAUSE_SECONDS * 2 ** (delivery.attempts - 1)
    _claimed(delivery).update(due_at=now + timedelta(seconds=pause), error=words)
    logger.warning("alert %s will be tried again in %s s: %s", delivery, pause, words)


def _claimed(delivery: AlertDelivery) -> QuerySet[AlertDelivery]:
    """The row, unless its claim ran out and somebody else has it by now."""
    return AlertDelivery.objects.filter(pk=delivery.pk, state=State.DUE, attempts=delivery.attempts)


def _message(*, alert: Alert, delivery: AlertDelivery) -> Message:
    incident = alert.incident
    return Message(
        delivery_id=delivery.pk,
        incident_id=incident.pk,
        event=alert.event,
        kind=incident.kind,
        severity=alert.severity,
        bucket=f"{incident.pool_id}:{incident.bucket_no}",
        sale=incident.pool.sale.name,
        detail=alert.detail,
        count=alert.count,
        units=alert.units,
        happened_at=alert.created_at,
    )
