"""The servers that the shop depends on, and how each is asked whether it is there."""

from celery import current_app
from django.db import connection
from django_redis import get_redis_connection
from kombu import Connection

from config.errands import Errand, hasty_database
from seckill.gate.rehearsal import rehearse


def ask_mysql() -> None:
    """Run a statement over a new connection."""
    with hasty_database(), connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def ask_cache() -> None:
    """Send a PING."""
    get_redis_connection("default").ping()


def broker_connection() -> Connection:
    """Return a connection to the broker that waits at most a second for an answer."""
    timeouts = {"socket_timeout": 1, "socket_connect_timeout": 1}
    options = {**current_app.conf.broker_transport_options, **timeouts}
    return current_app.connection_for_write(transport_options=options, connect_timeout=1)


def ask_broker() -> None:
    """Open a channel, which on Redis sends a PING and on RabbitMQ logs in."""
    with broker_connection() as broker:
        broker.default_channel  # noqa: B018  opened by being looked at


MYSQL = Errand(name="mysql", ask=ask_mysql)
STOCK_REDIS = Errand(name="stock_redis", ask=rehearse)
CACHE_REDIS = Errand(name="cache_redis", ask=ask_cache)
BROKER = Errand(name="broker", ask=ask_broker)
ALL = (MYSQL, STOCK_REDIS, CACHE_REDIS, BROKER)
