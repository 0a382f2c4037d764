"""A reconciliation that somebody wants now: asked of the workers, whose result is a stored run like every other."""

from celery import current_app
from kombu.exceptions import KombuError

from seckill.conf import LIMITS
from seckill.mending import Extent
from seckill.models import Bucket
from seckill.tasks import RECONCILE_EXPIRES_SECONDS, reconcile_full, reconcile_one


class RecheckUnavailable(Exception):
    """Raised when the broker does not take the message."""


def ask_for_reconciliation(*, pool_id: int, extent: Extent) -> int:
    """Ask for a comparison of each bucket of a pool; return how many there are.

    Raises ``RecheckUnavailable`` after a second or two without a broker; beat compares each minute anyway.
    """
    task = reconcile_full if extent is Extent.FULL else reconcile_one
    numbers = list(Bucket.objects.filter(pool_id=pool_id).order_by("number").values_list("number", flat=True))
    timeout = LIMITS.publish_timeout_seconds
    options = {
        **current_app.conf.broker_transport_options,
        "socket_timeout": timeout,
        "socket_connect_timeout": timeout,
    }
    # A connection of its own, which may not wait for ever: somebody looks at the page.
    with current_app.connection_for_write(transport_options=options, connect_timeout=timeout) as connection:
        errors: tuple[type[BaseException], ...] = (
            KombuError,
            *connection.connection_errors,
            *connection.channel_errors,
        )
        try:
            producer = current_app.amqp.Producer(connection, auto_declare=False)
            for number in numbers:
                task.apply_async((pool_id, number), producer=producer, expires=RECONCILE_EXPIRES_SECONDS, retry=False)
        except errors as error:
            raise RecheckUnavailable(str(error)) from error
    return len(numbers)
