"""The shop's HTTP API as buyers call it, and what is measured of their purchase calls."""

import json
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from types import TracebackType
from typing import Any, Self

import aiohttp

from benchmarks.plan import Shopper

CONNECT_TIMEOUT_SECONDS = 5
READ_TIMEOUT_SECONDS = 10  # Counted from the last byte, so that a wait for a connection is no time-out.
NO_ANSWER = "no_answer"
ACCEPTED = "accepted"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One HTTP answer; `body` is {} where it was no JSON object, `wait_seconds` how long the shop says to wait."""

    status: int
    body: dict[str, Any]
    wait_seconds: float | None

    @property
    def code(self) -> str:
        """The problem's code, or the status where there is none."""
        return str(self.body.get("code", f"http_{self.status}"))

    @property
    def is_passing(self) -> bool:
        """Whether the same call may fare better later: throttled, an outage, not started yet."""
        return self.status == 429 or self.status >= 500 or self.code == "not_started"


@dataclass
class Clock:
    """The shop's clock as seen from here, by the quickest of the calls that told its time."""

    offset_seconds: float = 0.0
    round_trip_seconds: float = float("inf")

    def now(self) -> float:
        """Seconds since 1970, as the shop has them."""
        return time.time() + self.offset_seconds

    def learn(self, *, server_time: str, sent_at: float) -> None:
        """Take a call's word for the time if it was the quickest so far."""
        round_trip = time.time() - sent_at
        if round_trip < self.round_trip_seconds:
            self.round_trip_seconds = round_trip
            self.offset_seconds = datetime.fromisoformat(server_time).timestamp() - sent_at - round_trip / 2


@dataclass
class Measured:
    """What is kept of all purchase calls; latencies only of those answered after the opening.

    `last_accepted_at` is of the last new acceptance: the same answer once more to a second click does not count.
    """

    opens_at: float
    accepted_numbers: set[str] = field(default_factory=set)
    latencies_ms: list[float] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)
    last_answer_at: float | None = None
    last_accepted_at: float | None = None
    trouble_at: float | None = None
    well_again_at: float | None = None

    def note(self, answer: Answer | None, *, seconds: float, now: float) -> None:
        """Count one call's answer, None if it had none."""
        code = NO_ANSWER if answer is None else ACCEPTED if answer.status == 202 else answer.code
        self.answers[code] += 1
        if now < self.opens_at:
            return
        if answer is None or answer.status >= 500:
            self.trouble_at, self.well_again_at = now, None
        elif self.well_again_at is None:
            self.well_again_at = now
        if answer is None:
            return
        self.latencies_ms.append(seconds * 1000)
        self.last_answer_at = now
        if code == ACCEPTED and answer.body["order_no"] not in self.accepted_numbers:
            self.accepted_numbers.add(answer.body["order_no"])
            self.last_accepted_at = now


class Client:
    """The calls; each returns None when no answer came. Use it as an async context manager."""

    def __init__(self, *, url: str, connections_max: int, opens_at: float) -> None:
        self.clock = Clock()
        self.measured = Measured(opens_at=opens_at)
        self._http = aiohttp.ClientSession(
            url,
            connector=aiohttp.TCPConnector(limit=connections_max),
            cookie_jar=aiohttp.DummyCookieJar(),  # Thousands of buyers share the connections, never a cookie.
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=CONNECT_TIMEOUT_SECONDS, sock_read=READ_TIMEOUT_SECONDS
            ),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.close()

    async def ask_ticket(self, *, item_id: int, shopper: Shopper) -> Answer | None:
        """Ask for a ticket with the buyer's session."""
        headers = {
            "Cookie": f"sessionid={shopper.session}; csrftoken={shopper.csrf}",
            "X-CSRFToken": shopper.csrf,
        }
        sent_at = time.time()
        answer = await self._call("POST", f"/api/v1/items/{item_id}/ticket/", headers=headers, data={})
        if answer is not None and "server_time" in answer.body:
            self.clock.learn(server_time=answer.body["server_time"], sent_at=sent_at)
        return answer

    async def purchase(self, *, ticket: str, quantity: float) -> Answer | None:
        """Purchase, and measure the call."""
        clicked = time.perf_counter()
        answer = await self._call("POST", "/api/v1/purchases/", data={"ticket": ticket, "quantity": quantity})
        self.measured.note(answer, seconds=time.perf_counter() - clicked, now=self.clock.now())
        return answer

    async def ask_status(self, *, order_no: str, ticket: str) -> Answer | None:
        """Ask what became of an order number."""
        headers = {"Authorization": f"Ticket {ticket}"}
        return await self._call("GET", f"/api/v1/purchases/{order_no}/", headers=headers)

    async def _call(
        self, method: str, path: str, *, headers: dict[str, str] | None = None, data: dict[str, Any] | None = None
    ) -> Answer | None:
        try:
            async with self._http.request(method, path, headers=headers, json=data) as response:
                body = _object(await response.read())
                wait_seconds = _wait_seconds(header=response.headers.get("Retry-After"), body=body)
                return Answer(status=response.status, body=body, wait_seconds=wait_seconds)
        except (TimeoutError, aiohttp.ClientError):
            return None


def _object(raw: bytes) -> dict[str, Any]:
    try:
        body = json.loads(raw)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _wait_seconds(*, header: str | None, body: dict[str, Any]) -> float | None:
    """Read Retry-After in seconds, or the time until the opening; None where the answer names neither."""
    if header is not None and header.isdecimal():
        return float(header)
    return float(body["opens_in_ms"]) / 1000 if "opens_in_ms" in body else None
