"""Looking into the broker: which wake-ups wait in its settle queue."""

import base64
import json
import time

from django.conf import settings
from redis import Redis
from redis.exceptions import RedisError

from seckill.gate.keys import BucketRef

SECONDS_MAX = 5


def broker() -> Redis:
    """A client of the broker's database."""
    return Redis.from_url(settings.CELERY_BROKER_URL, protocol=2)


def empty_queues() -> None:
    """Throw away what earlier tests published; the broker's own tables stay."""
    with broker() as client:
        client.delete("settle", "sweep", "slow", "archive", "alerts")


def is_broker_up() -> bool:
    """Tell whether the broker answers."""
    with broker() as client:
        try:
            return bool(client.ping())
        except RedisError:
            return False


def settle_messages() -> list[BucketRef]:
    """The buckets of the waiting wake-ups, the oldest first."""
    with broker() as client:
        raw = client.lrange("settle", 0, -1)
    return [_bucket(message) for message in reversed(raw)]


def waiting_tasks(queue: str) -> list[tuple[str, list[int]]]:
    """The tasks that wait in a queue with their arguments, the oldest first."""
    with broker() as client:
        messages = [json.loads(raw) for raw in reversed(client.lrange(queue, 0, -1))]
    return [(m["headers"]["task"], json.loads(base64.b64decode(m["body"]))[0]) for m in messages]


def wait_for_message(bucket: BucketRef) -> None:
    """Return once a wake-up for the bucket waits; the publisher works in order, so all before it are there too."""
    deadline = time.monotonic() + SECONDS_MAX
    while bucket not in settle_messages():
        assert time.monotonic() < deadline, f"no wake-up for {bucket}"
        time.sleep(0.01)


def _bucket(message: bytes | str) -> BucketRef:
    body = json.loads(message)["body"]
    (pool_id, number), *_ = json.loads(base64.b64decode(body))
    return BucketRef(pool_id=pool_id, number=number)
