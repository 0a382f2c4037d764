"""Wake-up calls to the settle workers, and to whoever sends alerts, published by one thread per process.

A purchase only leaves a note for the thread, so a broker that is slow, hung or gone never delays an
answer. Notes are kept per bucket and coalesce; after a failure the thread tries again each second. A
lost one costs at most seconds: the sweep looks at every queue, and beat at the alerts, anyway.
"""

import logging
import threading
import time
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
ALERTS_TASK = "seckill.deliver_alerts"
ALERTS_EXPIRE_SECONDS = 5


class Publisher:
    """Takes notes from request threads and publishes them from a thread of its own."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        # In their order, each with the request or task that caused it; None stands for the alerts.
        self._noted: dict[BucketRef | None, str] = {}
        self._thread: threading.Thread | None = None
        self._producer: Producer | None = None
        self._is_failing = False

    def request(self, bucket: BucketRef) -> None:
        """Note that a bucket's queue wants a worker. Never blocks on the broker, never raises."""
        self._note(bucket)

    def request_alerts(self) -> None:
        """Note that alerts are to be sent. Never blocks on the broker, never raises."""
        self._note(None)

    def _note(self, note: BucketRef | None) -> None:
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

    def _publish(self, note: BucketRef | None, cause: str) -> bool:
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


def _send(*, note: BucketRef | None, cause: str, producer: Producer) -> None:
    send = partial(current_app.send_task, producer=producer, retry=False, headers=as_headers(cause))
    if note is None:
        send(ALERTS_TASK, expires=ALERTS_EXPIRE_SECONDS)
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
request_alerts = _publisher.request_alerts
