"""Who is kept out: asked on the cold path only, from a short memory of the whole list."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

from django.db.models import Q, QuerySet

from accounts.models import Block
from rest.memory import Memory

# A new block holds everywhere after so long; the list is read so seldom that a crowd costs nothing.
NETWORKS_SECONDS = 2

_networks: Memory[Sequence["BlockedNetwork"]] = Memory(seconds=NETWORKS_SECONDS, entries_max=1)


@dataclass(frozen=True, kw_only=True)
class BlockedNetwork:
    """A network on the list, and until when."""

    network: IPv4Network | IPv6Network
    until: datetime | None


def is_account_blocked(*, account_id: int, now: datetime) -> bool:
    """Tell whether an account is on the block list."""
    return _valid(now).filter(account_id=account_id).exists()


def is_address_blocked(*, address: IPv4Address | IPv6Address, now: datetime) -> bool:
    """Tell whether an address is in a network on the block list; up to two seconds behind the list."""
    networks = _networks.get("all", lambda: _read_networks(now))
    return any(address in entry.network for entry in networks if entry.until is None or entry.until > now)


def network_of(text: str) -> str:
    """Return the CIDR form of an address or network. Raises ``ValueError``."""
    return str(ip_network(text.strip(), strict=False))


def _valid(now: datetime) -> QuerySet[Block]:
    return Block.objects.filter(Q(until__isnull=True) | Q(until__gt=now))


def _read_networks(now: datetime) -> Sequence[BlockedNetwork]:
    rows = _valid(now).exclude(network="").values_list("network", "until")
    return [BlockedNetwork(network=ip_network(network), until=until) for network, until in rows]
