"""A crowd in a process of its own that keeps a shop saturated: as many connections as asked for, each at once again.

Run as ``python -m tests.support.hammer PARENT PORT CONNECTIONS`` with tickets on standard input, one a line. It ends
with its parent, or when it is told to (SIGTERM), and then says how many answers of each status there were.
"""

import asyncio
import json
import signal
import sys
from collections import Counter
from contextlib import suppress

from benchmarks.servers.process import HOST, end_with_parent

PATH = "/api/v1/purchases/"


def request_of(ticket: str) -> bytes:
    """Write a purchase down as it goes over the wire."""
    body = json.dumps({"ticket": ticket, "quantity": 1})
    head = (
        f"POST {PATH} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return (head + body).encode()


async def hammer(*, port: int, requests: list[bytes], answers: Counter[int]) -> None:
    """Send one request after the other over one connection, for ever."""
    reader, writer = await asyncio.open_connection(HOST, port)
    while True:
        for request in requests:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(length)
            answers[int(head[9:12])] += 1


async def main() -> None:
    """Hammer until told to stop."""
    end_with_parent(int(sys.argv[1]))
    port, connections = int(sys.argv[2]), int(sys.argv[3])
    requests = [request_of(line.strip()) for line in sys.stdin]
    answers: Counter[int] = Counter()
    shares = [requests[n::connections] for n in range(connections)]
    crowd = [asyncio.create_task(hammer(port=port, requests=share, answers=answers)) for share in shares]
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    print("ready", flush=True)  # noqa: T201  whoever has begun it reads this
    await stopped.wait()
    for one in crowd:
        one.cancel()
    with suppress(asyncio.CancelledError):
        await asyncio.gather(*crowd)
    print(json.dumps(answers), flush=True)  # noqa: T201  as above


if __name__ == "__main__":
    asyncio.run(main())
