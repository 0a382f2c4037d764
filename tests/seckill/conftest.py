"""What several tests of the sale need set up."""

from collections.abc import Iterator

import pytest
from django.conf import settings
from redis import Redis

from benchmarks.servers import PrivateServers
from seckill.gate import connection as gate_connection
from seckill.gate.connection import forget_connections
from tests.support.asgi import forget_pipeline
from tests.support.proxy import Proxy, proxy_to


@pytest.fixture
def proxied_gate(servers: PrivateServers, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """The gate behind a proxy that can lose a reply."""
    with proxy_to(servers.stock_redis.port) as proxy:
        options = dict(settings.CACHES["stock"]["OPTIONS"]["CONNECTION_POOL_KWARGS"])
        del options["timeout"]  # the plain pool of this client has none
        client = Redis.from_url(f"redis://127.0.0.1:{proxy.port}", socket_timeout=2, **options)
        monkeypatch.setattr(gate_connection, "raw_client", lambda: client)
        forget_connections()
        forget_pipeline()
        yield proxy
        forget_connections()
        forget_pipeline()
        client.close()
