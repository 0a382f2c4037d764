"""One URL says how Redis is reached; what cannot work is refused when the settings are read."""

from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from config.redis_urls import broker_of, cache_of, is_rabbitmq, stock_of
from seckill.gate.sentinel import SentinelFactory

CLUSTER = "redis+cluster://shop:secret@one:7000,two,[::1]:7002"
SENTINELS = "redis+sentinel://:secret@one:5000,two/main/2?sentinel_password=other"


def stock(url: str) -> dict[str, Any]:
    return stock_of(url, connections=7)


@pytest.mark.parametrize("url", ["redis://one:6379/1", "rediss://:secret@one/0", "unix:///run/redis.sock?db=1"])
def test_one_server_is_reached_as_its_url_says(url: str) -> None:
    assert stock(url)["LOCATION"] == cache_of(url)["LOCATION"] == broker_of(url)[0] == url
    options = stock(url)["OPTIONS"]
    assert "CONNECTION_FACTORY" not in options
    assert (options["CONNECTION_POOL_KWARGS"]["max_connections"], options["CONNECTION_POOL_KWARGS"]["timeout"]) == (
        7,
        0.5,
    )
    assert options["CONNECTION_POOL_KWARGS"]["retry"].get_retries() == 0


def test_a_cluster_is_found_by_any_of_its_nodes() -> None:
    entry = stock(CLUSTER)
    assert entry["LOCATION"] == "redis://shop:secret@one:7000/0"
    assert entry["OPTIONS"]["NODES"] == (("two", 6_379), ("::1", 7_002))
    assert entry["OPTIONS"]["CONNECTION_FACTORY"] == "seckill.gate.cluster.ClusterConnectionFactory"
    assert stock("rediss+cluster://one")["LOCATION"] == "rediss://one:6379/0"


def test_sentinels_name_the_master() -> None:
    entry = stock(SENTINELS)
    options = entry["OPTIONS"]
    assert entry["LOCATION"] == "redis://:secret@main/2"
    assert options["SENTINELS"] == (("one", 5_000), ("two", 26_379))
    assert options["SENTINEL_KWARGS"]["password"] == "other"
    assert "timeout" not in options["CONNECTION_POOL_KWARGS"]
    assert "ssl" not in options["CONNECTION_POOL_KWARGS"]
    assert stock("rediss+sentinel://one/main")["OPTIONS"]["CONNECTION_POOL_KWARGS"]["ssl"] is True


def test_two_masters_of_one_name_are_told_apart_by_their_sentinels() -> None:
    """django-redis alone would give the second the pool of the first."""
    pools = []
    for host in ("one", "two", "one"):
        entry = stock(f"redis+sentinel://{host}:26379/mymaster")
        factory = SentinelFactory(entry["OPTIONS"])
        pools.append(factory.connect(entry["LOCATION"]).connection_pool)
    assert pools[0] is pools[2] is not pools[1]


def test_celery_is_told_of_sentinels_in_its_own_words() -> None:
    url, options = broker_of(SENTINELS)
    assert url == "sentinel://:secret@one:5000/2;sentinel://:secret@two:26379/2"
    assert options == {"master_name": "main", "sentinel_kwargs": {"password": "other"}}


@pytest.mark.parametrize("url", ["amqp://shop:secret@one//", "amqps://one/shop"])
def test_rabbitmq_confirms_what_it_was_sent(url: str) -> None:
    """CASES 24: nothing else tells a sender that a broker at its limit has dropped his message."""
    assert is_rabbitmq(url)
    assert broker_of(url) == (url, {"confirm_publish": True})
    assert not is_rabbitmq(SENTINELS)


@pytest.mark.parametrize(
    ("reach", "url"),
    [
        (cache_of, CLUSTER),
        (broker_of, CLUSTER),
        (stock, "redis+cluster://"),
        (stock, "redis+sentinel://one:26379"),
    ],
)
def test_what_cannot_work_is_refused(reach: Any, url: str) -> None:
    with pytest.raises(ImproperlyConfigured):
        reach(url)
