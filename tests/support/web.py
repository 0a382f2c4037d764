"""A client of the running shop: keeps its connection, measures, and repeats as the API asks."""

import json
import time
from dataclasses import dataclass, field
from http.client import HTTPConnection
from typing import Any

REPEATS_MAX = 50


@dataclass
class Browser:
    """One buyer's connection to the shop; ``seconds`` holds how long each purchase call took."""

    port: int
    seconds: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._connection = HTTPConnection("127.0.0.1", self.port, timeout=10)

    def purchase(self, ticket: str, *, quantity: int = 1) -> tuple[int, dict[str, Any]]:
        """Send one purchase; return status and body."""
        started = time.monotonic()
        answer = self._call("POST", "/api/v1/purchases/", {}, {"ticket": ticket, "quantity": quantity})
        self.seconds.append(time.monotonic() - started)
        return answer

    def buy(self, ticket: str, *, quantity: int = 1) -> str:
        """Purchase until the answer is not 503; return the order number or the code."""
        for _ in range(REPEATS_MAX):
            status, body = self.purchase(ticket, quantity=quantity)
            if status != 503:
                return str(body.get("order_no") or body["code"])
            time.sleep(0.1)
        raise AssertionError("the shop stayed unavailable")

    def poll(self, ticket: str, order_no: str) -> dict[str, Any]:
        """Ask once what became of an order."""
        status, body = self._call("GET", f"/api/v1/purchases/{order_no}/", {"Authorization": f"Ticket {ticket}"}, None)
        assert status == 200, body
        return body

    def close(self) -> None:
        """Hang up."""
        self._connection.close()

    def _call(self, method: str, path: str, headers: dict[str, str], body: Any) -> tuple[int, dict[str, Any]]:
        data = None if body is None else json.dumps(body)
        self._connection.request(method, path, data, headers | {"Content-Type": "application/json"})
        response = self._connection.getresponse()
        return response.status, json.loads(response.read())


def wait_until(condition: Any, *, seconds: float) -> float:
    """Return how many seconds it took until the condition held; fail after so many."""
    started = time.monotonic()
    while not condition():
        waited = time.monotonic() - started
        assert waited < seconds, f"still waiting after {waited:.1f} s"
        time.sleep(0.02)
    return time.monotonic() - started
