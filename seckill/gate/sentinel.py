"""Redis behind Sentinels, through django-redis's own factory; what that one forgets is which Sentinels."""

from typing import Any

from django_redis.pool import SentinelConnectionFactory


class SentinelFactory(SentinelConnectionFactory):  # type: ignore[misc]
    """What ``CONNECTION_FACTORY`` names.

    django-redis keeps pools by URL alone, and a Sentinel's URL is hardly more than a name that everybody uses: stock
    and cache, each "mymaster" of Sentinels of its own, would share whichever pool was made first.
    """

    def get_or_create_connection_pool(self, params: dict[str, Any]) -> Any:
        """Return the one pool of this name with these Sentinels."""
        key = f"{params['url']} {self.options['SENTINELS']}"
        if key not in self._pools:
            self._pools[key] = self.get_connection_pool(params)
        return self._pools[key]
