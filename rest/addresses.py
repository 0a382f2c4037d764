"""The client's address, believed only as far as the shop's own proxies vouch for it.

Each proxy appends the address it was called from to ``X-Forwarded-For``. With n trusted proxies in
front, the n-th entry from the right is the client; whatever stands left of it, the client wrote.
"""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from django.conf import settings
from django.http import HttpRequest

# What one customer gets from his provider; he can call from any address in it.
IPV6_PREFIX = 64
NOWHERE = ip_address("0.0.0.0")  # noqa: S104  stands for a client whose address nobody knows, binds nothing


def client_address(request: HttpRequest) -> IPv4Address | IPv6Address:
    """Return the client's address; ``0.0.0.0`` when there is none, as over a Unix socket."""
    hops = settings.TRUSTED_PROXIES
    if not hops:
        return _parse(request.META.get("REMOTE_ADDR", ""))
    forwarded = [part.strip() for part in request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")]
    return _parse(forwarded[-hops] if len(forwarded) >= hops else request.META.get("REMOTE_ADDR", ""))


def client_network(request: HttpRequest) -> str:
    """Return what counts as one client: the IPv4 address, or the IPv6 network of one customer."""
    address = client_address(request)
    if isinstance(address, IPv4Address):
        return str(address)
    return str(ip_network((address, IPV6_PREFIX), strict=False))


def client_address_text(request: HttpRequest) -> str:
    """Return the address that stands for the client, for libraries that ask by dotted path; see ``client_network``."""
    return client_network(request).partition("/")[0]


def _parse(text: str) -> IPv4Address | IPv6Address:
    try:
        address = ip_address(text)
    except ValueError:
        return NOWHERE
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
