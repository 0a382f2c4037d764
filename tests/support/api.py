"""Talking to the API as an app does, and reading what it says."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import User
from django.test import Client

from tests.support.doors import Reply, Served

if TYPE_CHECKING:
    from django.test.client import _MonkeyPatchedWSGIResponse as ClientResponse

PURCHASES = "/api/v1/purchases/"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One answer of the API; its body is one JSON object."""

    status: int
    headers: Mapping[str, str]
    body: dict[str, Any]


def read(response: "ClientResponse") -> Answer:
    """Read an answer; whatever the API says is about one caller and must be kept by no cache (CASES 40d)."""
    assert response["Cache-Control"] == "no-store"
    # Each request has an id of its own; without it, two answers alike are equal.
    headers = {name: value for name, value in response.items() if name != "X-Request-Id"}
    return Answer(status=response.status_code, headers=headers, body=json.loads(response.content))


# Where calls of nobody in particular go: Django's handler in this process, or the shop that is served here.
_door: list[Served] = []


@contextmanager
def through(served: Served) -> Iterator[None]:
    """Let calls of nobody in particular go to a served shop for the length of the block."""
    _door.append(served)
    try:
        yield
    finally:
        _door.pop()


def post_raw(body: bytes | str, *, content_type: str = "application/json", path: str = PURCHASES) -> Answer:
    """Post a body as it is, as nobody in particular."""
    if _door and path == PURCHASES:
        raw = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
        return read_reply(_door[-1].call("POST", path, body=raw, headers={"Content-Type": content_type}))
    return read(Client().post(path, data=body, content_type=content_type))


def read_reply(reply: Reply) -> Answer:
    """Read an answer of a served shop, as ``read`` does."""
    assert reply.headers["Cache-Control"] == "no-store"
    headers = {name: value for name, value in reply.headers.items() if name != "X-Request-Id"}
    return Answer(status=reply.status, headers=headers, body=json.loads(reply.content))


def post_purchase(*, ticket: object, quantity: object = 1) -> Answer:
    """Purchase with a ticket and nothing else."""
    return post_raw(json.dumps({"ticket": ticket, "quantity": quantity}))


def poll(order_no: str, *, client: Client | None = None, ticket: str | None = None) -> Answer:
    """Ask what became of an order number, by session or by ticket."""
    headers = {"Authorization": f"Ticket {ticket}"} if ticket is not None else {}
    if _door and client is None:
        return read_reply(_door[-1].call("GET", f"{PURCHASES}{order_no}/", headers=headers))
    return read((client or Client()).get(f"{PURCHASES}{order_no}/", headers=headers))


def ask_ticket(
    client: Client, item_id: int, body: Mapping[str, Any] | None = None, *, csrf_token: str | None = None
) -> Answer:
    """Ask for a ticket."""
    data = json.dumps(body or {})
    path = f"/api/v1/items/{item_id}/ticket/"
    headers = {"X-CSRFToken": csrf_token} if csrf_token is not None else {}
    return read(client.post(path, data=data, content_type="application/json", headers=headers))


def session_of(user: User, *, enforce_csrf_checks: bool = False) -> Client:
    """A browser in which the user is logged in."""
    client = Client(enforce_csrf_checks=enforce_csrf_checks)
    client.force_login(user)
    return client


def refusal(answer: Answer) -> tuple[int, str]:
    """Check that an answer is a problem as RFC 9457 says; return its status and code."""
    body = answer.body
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert (body["status"], body["type"]) == (answer.status, f"/problems/{body['code']}")
    assert len(body["title"]) > 3
    assert ("Retry-After" in answer.headers) == (answer.status in {429, 503})
    return answer.status, body["code"]
