"""A volley: as many connections as buyers, all open before the first call, and all calls sent at once."""

import asyncio
import resource
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.servers.process import HOST

LOST = 0
PATIENCE_SECONDS = 20.0
# Connections that are being opened at the same time: the volley is about calls, not about handshakes.
OPENED_AT_ONCE = 100


@dataclass(frozen=True, kw_only=True)
class Volley:
    """What came back: answers by status, those without one under LOST, and what the answered ones took, sorted."""

    statuses: Counter[int]
    latencies_ms: list[float]


def fire(*, port: int, bodies: Sequence[bytes]) -> Volley:
    """Send each body as a purchase on a connection of its own, all at once."""
    _allow_files(len(bodies))
    return asyncio.run(_fire(port=port, bodies=bodies))


async def _fire(*, port: int, bodies: Sequence[bytes]) -> Volley:
    opened: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
    for start in range(0, len(bodies), OPENED_AT_ONCE):
        some = bodies[start : start + OPENED_AT_ONCE]
        opened += await asyncio.gather(*(asyncio.open_connection(HOST, port) for _ in some))
    go = asyncio.Event()
    calls = [asyncio.create_task(_call(*pair, body, go)) for pair, body in zip(opened, bodies, strict=True)]
    await asyncio.sleep(0)  # Each waits at the gate now.
    go.set()
    answers = await asyncio.gather(*calls)
    for _, writer in opened:
        writer.close()
    return Volley(
        statuses=Counter(status for status, _ in answers),
        latencies_ms=sorted(taken for status, taken in answers if status != LOST),
    )


async def _call(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes, go: asyncio.Event
) -> tuple[int, float]:
    await go.wait()
    began = time.perf_counter()
    writer.write(_request(body))
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            head = await reader.readuntil(b"\r\n\r\n")
    except (OSError, EOFError, TimeoutError):
        return LOST, 0.0
    return int(head.split(b" ", 2)[1]), 1_000 * (time.perf_counter() - began)


def _request(body: bytes) -> bytes:
    return (
        f"POST /api/v1/purchases/ HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode() + body


def _allow_files(count: int) -> None:
    """Let this process have that many sockets, as far as the system lets it ask."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, 2 * count + 200), hard), hard))
