"""The Celery app: its messages are wake-up calls, never the record of anything."""

import os
from typing import Any

from celery import Celery
from celery.signals import worker_init
from django.core.exceptions import ImproperlyConfigured
from kombu import Exchange, Queue
from kombu.transport.redis import Channel

from config.redis_urls import is_rabbitmq

# Nor does a closing channel put back what was not finished: see the transport options in the settings.
Channel.do_restore = False

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("seckill")
app.config_from_object("django.conf:settings", namespace="CELERY")
# On RabbitMQ several nodes keep a queue, and a message that kills its worker each time is dropped in the end. The
# environment is read, since the settings are not there yet when they import this package.
QUORUM = {"x-queue-type": "quorum", "x-delivery-limit": 5}
arguments = QUORUM if is_rabbitmq(os.environ.get("BROKER_URL", "")) else None
app.conf.task_queues = [
    Queue(name, Exchange(name), routing_key=name, queue_arguments=arguments)
    for name in ("settle", "sweep", "slow", "archive", "alerts", "money")
]
app.autodiscover_tasks()


@worker_init.connect
def check_servers(**_kwargs: Any) -> None:
    """Refuse to start a worker on servers that would lose or evict stock.

    Celery swallows the exceptions of signal handlers; only leaving the process stops it.
    """
    from config.checks import require_sound_servers

    try:
        require_sound_servers()
    except ImproperlyConfigured as error:
        raise SystemExit(f"The worker does not start: {error}") from error


from config import task_signals  # noqa: E402, F401  connected by being imported
