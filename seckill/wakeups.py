"""Wake-up calls to settle workers, to who brings units and who sends alerts, published by one thread per process.

A purchase only leaves a note for the thread, so a broker that is slow, hung or gone never delays an
answer. Notes are kept per bucket and coalesce; after a failure the thread tries again each second. A
lost one costs at most seconds: the sweep looks at every queue, and beat at the alerts, anyway.
"""

import logging
import threading
import time
from dataclasses import dataclass
from functools import partial

from celery import current_app
from kombu import Producer

from metrics.definitions import WAKE_UP_SECONDS, WAKE_UPS
from rest.causes import as_headers, current_cause
from seckill.conf import LIMITS
from seckill.gate.keys import BucketRef

logger = logging.getLogger(__name__)

# By name: the tasks import what opens incidents, and incidents leave notes here.
SETTLE_TASK = "seckill.settle"
GATHER_TASK = "seckill.gather"
# A buyer comes back after a second and asks again; a message older than that has nobody waiting for it.
GATHER_EXPIRES_SECONDS = 5
# A bucket that many ask for units is not told to everybody's worker each time.
UNITS_SECONDS = 0.2
# Notes whose time is kept; a full table is emptied, and some are told once more.
WANTED_MAX = 10_000
ALERTS_TASK = "seckill.deliver_alerts"
ALERTS_EXPIRE_SECONDS = 5


@dataclass(frozen=True)
class UnitsWanted:
    """A note that a bucket lacks units of an item that others have."""

    bucket: BucketRef
    item_id: int
    units: int


Note = BucketRef | UnitsWanted | None


class Publisher:
    """Takes notes from request threads and publishes them from a thread of its own."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        # In their order, each with the request or task that caused it; None stands for the alerts.
        self._noted: dict[Note, str] = {}
        self._wanted_at: dict[UnitsWanted, float] = {}
        self._thread: threading.Thread | None = None
        self._producer: Producer | None = None
        self._is_failing = False

    def request(self, bucket: BucketRef) -> None:
        """Note that a bucket's queue wants a worker. Never blocks on the broker, never raises."""
        self._note(bucket)

    def request_alerts(self) -> None:
        """Note that alerts are to be sent. Never blocks on the broker, never raises."""
        self._note(None)

    def request_units(self, *, bucket: BucketRef, item_id: int, units: int) -> None:
        """Note that a bucket wants units from others, five times a second at most. Never blocks, never raises."""
        note, now = UnitsWanted(bucket, item_id, units), time.monotonic()
        if now - self._wanted_at.get(note, -UNITS_SECONDS) < UNITS_SECONDS:
            return
        if len(self._wanted_at) > WANTED_MAX:
            self._wanted_at.clear()
        self._wanted_at[note] = now
        self._note(note)

    def _note(self, note: Note) -> None:
        with self._condition:
            self._noted.setdefault(note, current_cause())
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="wakeups", daemon=True)
                self._thread.start()
            self._condition.notify()

    def _run(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._noted)
                note = next(iter(self._noted))
                cause = self._noted.pop(note)
            if not self._publish(note, cause):
                with self._condition:
                    self._noted.setdefault(note, cause)
                # Nobody waits for this thread; without the pause it would do nothing but fail.
                time.sleep(LIMITS.publish_timeout_seconds)

    def _publish(self, note: Note, cause: str) -> bool:
        """Send one wake-up; tell whether the broker took it. Only the first failure of a row is logged."""
        try:
            if self._producer is None:
                self._producer = _connect()
            with WAKE_UP_SECONDS.time():
                _send(note=note, cause=cause, producer=self._producer)
        except Exception as error:  # noqa: BLE001  isolation point: whatever the broker does, the sweep covers it
            if not self._is_failing:
                logger.warning("no wake-up can be published: %s", error)
            self._is_failing = True
            WAKE_UPS.labels("failed").inc()
            self._forget_connection()
            return False
        if self._is_failing:
            logger.warning("wake-ups are published again")
        self._is_failing = False
        WAKE_UPS.labels("sent").inc()
        return True

    def _forget_connection(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None and producer.connection is not None:
            producer.connection.collect(socket_timeout=LIMITS.publish_timeout_seconds)


def _send(*, note: Note, cause: str, producer: Producer) -> None:
    send = partial(current_app.send_task, producer=producer, retry=False, headers=as_headers(cause))
    if note is None:
        send(ALERTS_TASK, expires=ALERTS_EXPIRE_SECONDS)
    elif isinstance(note, UnitsWanted):
        place = note.bucket.pool_id, note.bucket.number
        send(GATHER_TASK, (*place, note.item_id, note.units), expires=GATHER_EXPIRES_SECONDS)
    else:
        send(SETTLE_TASK, (note.pool_id, note.number))


def _connect() -> Producer:
    timeout = LIMITS.publish_timeout_seconds
    options = {
        **current_app.conf.broker_transport_options,
        "socket_timeout": timeout,
        "socket_connect_timeout": timeout,
    }
    connection = current_app.connection_for_write(transport_options=options, connect_timeout=timeout)
    return current_app.amqp.Producer(connection, auto_declare=False)


_publisher = Publisher()
request = _publisher.request
request_units = _publisher.request_units
request_alerts = _publisher.request_alerts
