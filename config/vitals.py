"""What ``/metrics`` reads from the stores: is each server up, queues, reconciliations, incidents, money that is due.

All servers are asked at once and for at most a second together. One that does not answer is ``seckill_up 0``, and what
only it knows is left out: a stale number would look like a good one. Several web hosts tell the same here, so rules
take the ``max`` over instances and never the sum.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from celery import current_app
from django.utils import timezone
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from config import dependencies
from config.errands import Errand, Finding, hasty_database, run_errands
from config.schedule import ScheduledTask, scheduled_tasks
from orders.selectors import MoneyDue, money_due
from seckill.gate.keys import BucketRef
from seckill.gate.pulse import Pulse
from seckill.gate.rehearsal import rehearse
from seckill.vital_signs import BookSigns, book_signs, gate_signs

# Which buckets there are, MySQL says; where it is away, they are those it named last.
BOOKS_SECONDS = 0.4
OTHERS_SECONDS = 0.5


@dataclass(frozen=True, kw_only=True)
class _Books:
    signs: BookSigns
    money: MoneyDue
    schedule: Sequence[ScheduledTask]
    read_at: datetime


_buckets: Sequence[BucketRef] = ()


def _read_books() -> _Books:
    global _buckets  # noqa: PLW0603  remembered for a scrape while MySQL is away
    now = timezone.now()
    with hasty_database():
        books = _Books(signs=book_signs(now=now), money=money_due(), schedule=scheduled_tasks(now=now), read_at=now)
    _buckets = books.signs.buckets
    return books


def _feel_gate() -> Mapping[BucketRef, Pulse | None]:
    rehearse()
    return gate_signs(buckets=_buckets)


def _count_messages() -> dict[str, int]:
    """Messages that wait in the broker, by queue; one that no worker ever declared is empty."""
    with dependencies.broker_connection() as broker:
        channel = broker.default_channel
        return {queue.name: queue(channel).queue_declare().message_count for queue in current_app.conf.task_queues}


BOOKS = Errand(name="mysql", ask=_read_books)
OTHERS = (
    Errand(name="stock_redis", ask=_feel_gate),
    Errand(name="cache_redis", ask=dependencies.ask_cache),
    Errand(name="broker", ask=_count_messages),
)


class StoreCollector(Collector):
    """Asks the stores when it is collected."""

    def collect(self) -> Iterator[Metric]:
        """Yield the families, of those stores that have answered."""
        found = {**run_errands([BOOKS], seconds=BOOKS_SECONDS), **run_errands(OTHERS, seconds=OTHERS_SECONDS)}
        yield from _health(found)
        if found["mysql"].is_up:
            yield from _of_books(found["mysql"].value)
        if found["stock_redis"].is_up:
            yield from _of_gate(found["stock_redis"].value)
        if found["broker"].is_up:
            waiting = _family("seckill_broker_messages", "Messages that wait for a worker", "queue")
            for queue, number in found["broker"].value.items():
                waiting.add_metric([queue], number)
            yield waiting


def _family(name: str, text: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, labels=labels)


def _plain(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, value=value)


def _health(found: Mapping[str, Finding]) -> Iterator[Metric]:
    up = _family("seckill_up", "Whether the server answers within a second", "dependency")
    seconds = _family("seckill_probe_seconds", "How long the server took to answer", "dependency")
    for name, finding in found.items():
        up.add_metric([name], float(finding.is_up))
        seconds.add_metric([name], finding.seconds)
    yield from (up, seconds)


def _of_books(books: _Books) -> Iterator[Metric]:
    incidents = _family("seckill_incidents_open", "Incidents that are open", "kind", "severity")
    for (kind, severity), number in books.signs.incidents.items():
        incidents.add_metric([kind, severity.lower()], number)
    age = _family("seckill_reconcile_age_seconds", "Since the last reconciliation of a bucket on sale", "bucket")
    verdict = _family("seckill_reconcile_verdict", "1 for what that reconciliation found", "bucket", "verdict")
    for bucket, check in books.signs.checks.items():
        age.add_metric([str(bucket)], check.age_seconds)
        verdict.add_metric([str(bucket), check.verdict.lower()], 1)
    yield from (incidents, age, verdict)
    yield _plain("seckill_buckets_on_sale", "Buckets that ought to be in Redis", len(books.signs.buckets))
    yield _plain("seckill_dead_letters_open", "Dead letters nobody has decided on", books.signs.dead_letters)
    yield _plain("seckill_alerts_given_up", "Alerts that never arrived", books.signs.alerts_given_up)
    yield _plain("seckill_refunds_due", "Payments that are to be given back or honoured", books.money.refunds_due)
    yield _plain("seckill_refunds_under_way", "Refunds a provider has not finished", books.money.refunds_under_way)
    due_at = books.money.oldest_return_due_at
    waited = 0.0 if due_at is None else max(0.0, (books.read_at - due_at).total_seconds())
    yield _plain("seckill_return_oldest_seconds", "How long the oldest closed order waits for its return", waited)
    yield from _of_schedule(books.schedule)


def _of_schedule(tasks: Sequence[ScheduledTask]) -> Iterator[Metric]:
    age = _family("seckill_scheduled_task_age_seconds", "Since beat last sent a periodic task", "task")
    interval = _family("seckill_scheduled_task_interval_seconds", "How often it ought to", "task")
    for task in tasks:
        age.add_metric([task.task], task.age_seconds)
        interval.add_metric([task.task], task.interval_seconds)
    yield from (age, interval)


def _of_gate(felt: Mapping[BucketRef, Pulse | None]) -> Iterator[Metric]:
    shown = _family("seckill_bucket_open", "Whether a bucket on sale is sound and not frozen", "bucket")
    length = _family("seckill_queue_entries", "Reservations that wait for MySQL", "bucket")
    longest = _family("seckill_queue_entries_max", "How many may wait before buyers are told to come back", "bucket")
    oldest = _family("seckill_queue_oldest_seconds", "How long the oldest of them waits", "bucket")
    left = _family("seckill_units_left", "Units that can be bought", "bucket", "item")
    for bucket, pulse in felt.items():
        shown.add_metric([str(bucket)], float(pulse is not None and not pulse.is_frozen))
        if pulse is None:
            continue
        length.add_metric([str(bucket)], pulse.queue_length)
        longest.add_metric([str(bucket)], pulse.max_queue)
        oldest.add_metric([str(bucket)], pulse.oldest_ms / 1000)
        for item, units in pulse.units.items():
            left.add_metric([str(bucket), str(item)], units.left)
    yield from (shown, length, longest, oldest, left)
