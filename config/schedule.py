"""The schedule as beat keeps it: when each periodic task was last sent, and how often it ought to be."""

from dataclasses import dataclass
from datetime import datetime

from django_celery_beat.models import PeriodicTask


@dataclass(frozen=True, kw_only=True)
class ScheduledTask:
    """One periodic task; the age of one that was never sent is how long it has been on the schedule."""

    task: str
    age_seconds: float
    interval_seconds: float
    was_sent: bool


def scheduled_tasks(*, now: datetime) -> list[ScheduledTask]:
    """Return the tasks that run at intervals. Beat writes what it did down every few seconds."""
    rows = PeriodicTask.objects.filter(enabled=True, interval__isnull=False).select_related("interval").order_by("task")
    return [
        ScheduledTask(
            task=row.task,
            age_seconds=(now - (row.last_run_at or row.date_changed)).total_seconds(),
            interval_seconds=row.interval.schedule.run_every.total_seconds(),
            was_sent=row.last_run_at is not None,
        )
        for row in rows
    ]
