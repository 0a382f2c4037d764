"""Buyers of a whole sale, for locust: browse, log in, take a ticket, wait, rush, poll, pay. See docs/rehearsal.md.

REHEARSAL_PLAN names the file with what ``manage.py rehearsal make`` printed; REHEARSAL_FIRST the first buyer's number.
What the shop says for a reason (sold out, come back later) is an answer of its own name and no failure.
"""

import json
import os
import random
import re
import time
from collections import Counter
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

import gevent
from locust import FastHttpUser, events, task
from locust.exception import StopUser

PLAN = json.loads(Path(os.environ["REHEARSAL_PLAN"]).read_text())
ENDS_FILE = os.environ.get("REHEARSAL_ENDS", "")
OPENS_AT = datetime.fromisoformat(PLAN["opens_at"]).timestamp()
API = "/api/v1"
# Spread as the guide for clients asks.
FIRST_CALL_SPREAD_SECONDS = 0.2
PATIENCE_SECONDS = 120.0
POLL_WAITS = (0.5, 1.0, 2.0, 4.0)
LONGEST_POLL_WAIT = 5.0
WAIT_SECONDS = 1.0
# A clock told by a slow call may be wrong by half of it.
CLOCK_CALLS_MAX = 5
QUICK_SECONDS = 0.1
FINAL = {"confirmed", "refused", "returned"}
BELIEVED_AFTER_A_LOOK = {"sold_out", "ended", "ticket_expired"}
REFUSALS = {"sold_out", "ended", "limit_reached", "not_enough_left", "ticket_expired"}

numbers = count(int(os.environ.get("REHEARSAL_FIRST", "1")))
ends: Counter[str] = Counter()


class Buyer(FastHttpUser):
    """One buyer, from the shop's window to his paid order."""

    network_timeout = 10.0
    connection_timeout = 5.0

    def on_start(self) -> None:
        """Be somebody of the plan."""
        number = next(numbers)
        if number >= int(os.environ.get("REHEARSAL_FIRST", "1")) + PLAN["buyers"]:
            raise StopUser
        self.username = f"{PLAN['prefix']}-{number}"
        self.bearer: dict[str, str] = {}
        self.offset = 0.0

    @task
    def whole_sale(self) -> None:
        """Go through it once; a buyer comes once."""
        try:
            end = self.play()
        except TimeoutError as error:
            end = f"failed: {error}"
        ends[end] += 1
        if ends.total() == PLAN["buyers"]:
            gevent.spawn_later(0.5, self.environment.runner.quit)
        raise StopUser

    def play(self) -> str:
        """Return how it ended."""
        self.call("1 browse", "GET", "/sales/")
        self.call("1 browse", "GET", f"/sales/{PLAN['sale_id']}/")
        login = {"username": self.username, "password": PLAN["password"]}
        self.bearer = {"Authorization": f"Bearer {self.persist('2 log in', 'POST', '/tokens/', body=login)['access']}"}
        self.set_clock()
        got = self.persist("3 ticket", "POST", f"/items/{PLAN['item_id']}/ticket/", body={})
        if "ticket" not in got:
            return f"no ticket: {got.get('code')}"
        gevent.sleep(max(0.0, OPENS_AT - time.time() - self.offset) + random.random() * FIRST_CALL_SPREAD_SECONDS)
        end = self.rush(got["ticket"], got["order_no"])
        return end if end != "confirmed" else self.pay(got["order_no"])

    def set_clock(self) -> None:
        """Take the server's clock for the opening, by the quickest of some calls."""
        quickest = float("inf")
        for _ in range(CLOCK_CALLS_MAX):
            sent = time.time()
            told = self.persist("3 clock", "GET", "/time/")["server_time_ms"] / 1000
            trip = time.time() - sent
            if trip < quickest:
                quickest, self.offset = trip, told + trip / 2 - time.time()
            if trip < QUICK_SECONDS:
                return
            gevent.sleep(WAIT_SECONDS + random.random())

    def rush(self, ticket: str, order_no: str) -> str:
        """Purchase until there is a word to believe, then follow it."""
        until = time.time() + PATIENCE_SECONDS
        status_headers = {"Authorization": f"Ticket {ticket}"}
        for attempt in count(1):
            body = {"ticket": ticket, "quantity": 1, "attempt": attempt}
            status, said, wait = self.call("4 purchase", "POST", "/purchases/", body=body, headers={})
            code = said.get("code", "")
            if status == 202:
                if (state := self.follow(order_no, status_headers)) != "not_reserved":
                    return state
            elif code in REFUSALS:
                if attempt == 1 or code not in BELIEVED_AFTER_A_LOOK:
                    return code
                if (state := self.follow(order_no, status_headers)) == "not_reserved":
                    return code
                return state
            elif status and status < 500 and status != 429 and code not in {"not_started", "paused"}:
                return f"failed: {code or status}"
            if time.time() > until:
                raise TimeoutError("purchase")
            gevent.sleep(wait + random.random() * (FIRST_CALL_SPREAD_SECONDS if code == "not_started" else 1))
        raise AssertionError

    def follow(self, order_no: str, headers: dict[str, str]) -> str:
        """Poll until the order is there or has an end."""
        until = time.time() + PATIENCE_SECONDS
        waits = iter(POLL_WAITS)
        while time.time() < until:
            _, said, wait = self.call("5 poll", "GET", f"/purchases/{order_no}/", headers=headers)
            state = said.get("state", "")
            if state in FINAL or state == "not_reserved":
                return str(state)
            gevent.sleep(max(next(waits, LONGEST_POLL_WAIT), wait if state == "unknown" else 0.0))
        raise TimeoutError("poll")

    def pay(self, order_no: str) -> str:
        """Pay on the sandbox's page, then wait until the shop has heard of it."""
        url = self.persist("6 pay", "POST", f"/orders/{order_no}/pay/", body={})["pay_url"]
        page = self.client.get(url, name="6 pay: the provider's page")
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text or "")
        if token is None:
            return "failed: no page to pay on"
        form = {"csrfmiddlewaretoken": token[1], "behaviour": "PROMPT", "pay": "1"}
        self.client.post(url, data=form, headers={"Referer": url}, name="6 pay: the provider's page")
        until = time.time() + PATIENCE_SECONDS
        while time.time() < until:
            if self.call("7 order", "GET", f"/orders/{order_no}/")[1].get("state") == "PAID":
                return "paid"
            gevent.sleep(WAIT_SECONDS)
        raise TimeoutError("paying")

    def persist(self, name: str, method: str, path: str, *, body: Any = None) -> dict[str, Any]:
        """Call until the answer is no outage, no throttle and no 'not yet'."""
        until = time.time() + PATIENCE_SECONDS
        while time.time() < until:
            status, said, wait = self.call(name, method, path, body=body)
            if status and status < 500 and status != 429 and said.get("code") != "not_preheated":
                return said
            gevent.sleep(wait + random.random())
        raise TimeoutError(name)

    def call(
        self, name: str, method: str, path: str, *, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, Any], float]:
        """Call once; return status, body and the wait that the shop asks for. Status 0: there was no answer."""
        sent = self.bearer if headers is None else headers
        with self.client.request(method, API + path, json=body, headers=sent, name=name, catch_response=True) as answer:
            try:
                said = json.loads(answer.text or "")
            except ValueError:
                said = {}
            status = answer.status_code
            wait = (answer.headers or {}).get("Retry-After", "") if status else ""
            if code := said.get("code"):
                answer.request_meta["name"] = f"{name}: {code}"
            if status and (status < 500 or (status == 503 and wait)):
                answer.success()
            if "opens_in_ms" in said:
                return status, said, said["opens_in_ms"] / 1000
            return status, said, float(wait) if wait.isdecimal() else WAIT_SECONDS


@events.quitting.add_listener
def tell_ends(**_: Any) -> None:
    """Leave how it ended for the buyers, as they were told."""
    if ENDS_FILE:
        Path(ENDS_FILE).write_text(json.dumps(ends))
