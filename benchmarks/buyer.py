"""One buyer: asks for a ticket, waits for the opening, clicks, and does not rest before a definite end."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

from benchmarks.client import Answer, Client
from benchmarks.plan import End, Habit, Outcome, Plan, Progress, Shopper

# Past this many seconds after the opening nobody waits for an answer any more.
PATIENCE_SECONDS = 60.0
# Where the shop names no wait: the first one. Each is longer than the one before by the factor, up to the longest.
FIRST_WAIT_SECONDS = 0.25
WAIT_FACTOR = 1.5
LONGEST_WAIT_SECONDS = 2.0
# Waits are longer by up to this part of themselves, so that those turned away together do not come back together.
JITTER = 0.5
# Enough to keep the shop busy before the rush, and few enough that no call waits for long.
TICKET_CALLS_AT_ONCE = 32
# Who comes early clicks at least this long before the opening; later would be a race with the clock.
EARLY_SECONDS = 0.2
NONSENSE = (0, -1, 1.5)

_FINAL = {"confirmed": End.CONFIRMED, "refused": End.REFUSED, "returned": End.RETURNED}


class Disappointed(Exception):
    """Raised when a buyer has no definite end: an answer that must not be, or none in time."""


@dataclass
class Crowd:
    """What all buyers of a rush share."""

    plan: Plan
    client: Client
    opening: asyncio.Event = field(default_factory=asyncio.Event)
    ticket_calls: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(TICKET_CALLS_AT_ONCE))
    last_ticket_at: float | None = None
    tickets: int = 0
    accepted: int = 0
    turned_away: int = 0
    ended: int = 0

    @property
    def progress(self) -> Progress:
        """The counts at this moment."""
        return Progress(
            tickets=self.tickets,
            answers=self.client.measured.answers.total(),
            accepted=self.accepted,
            turned_away=self.turned_away,
            ended=self.ended,
        )


class Buyer:
    """Plays one shopper of a crowd."""

    def __init__(self, *, shopper: Shopper, crowd: Crowd) -> None:
        self._shopper = shopper
        self._crowd = crowd
        self._client = crowd.client
        self._gives_up_at = crowd.plan.opens_at + PATIENCE_SECONDS
        self._ticket = ""
        self._order_no = ""
        self._was_accepted = False
        self._was_forgotten = False

    async def play(self) -> Outcome:
        """Go through it all and return how it ended; never raises."""
        try:
            outcome = await self._play()
        except Disappointed as reason:
            outcome = self._outcome(End.FAILED, str(reason))
        self._crowd.ended += 1
        return outcome

    async def _play(self) -> Outcome:
        await self._get_ticket()
        if self._shopper.habit is Habit.COMES_EARLY:
            await self._come_early()
        await self._crowd.opening.wait()
        await asyncio.sleep(random.random() * self._crowd.plan.reaction_seconds)
        if self._shopper.habit is Habit.SENDS_NONSENSE:
            await self._send_nonsense()
        clicks = 2 if self._shopper.habit is Habit.CLICKS_TWICE else 1
        while True:
            answer = await self._buy(clicks=clicks)
            if answer.status != 202:
                self._crowd.turned_away += 1
                return self._outcome(End.TURNED_AWAY, answer.code)
            if (outcome := await self._follow()) is not None:
                return outcome

    async def _get_ticket(self) -> None:
        async with self._crowd.ticket_calls:
            ask = partial(self._client.ask_ticket, item_id=self._crowd.plan.item_id, shopper=self._shopper)
            answer = await self._persist(ask, what="the ticket")
        if "ticket" not in answer.body:
            raise Disappointed(f"no ticket: {answer.status} {answer.code}")
        self._ticket, self._order_no = answer.body["ticket"], answer.body["order_no"]
        self._crowd.tickets += 1
        self._crowd.last_ticket_at = self._client.clock.now()

    async def _come_early(self) -> None:
        """Click once before the opening, if there is still time; that must not be accepted."""
        if self._client.clock.now() > self._crowd.plan.opens_at - EARLY_SECONDS:
            return
        answer = await self._client.purchase(ticket=self._ticket, quantity=1)
        if answer is not None and answer.status == 202 and self._client.clock.now() < self._crowd.plan.opens_at:
            raise Disappointed("a purchase was accepted before the opening")

    async def _send_nonsense(self) -> None:
        for quantity in NONSENSE:
            answer = await self._persist(partial(self._click, quantity), what=f"quantity {quantity}")
            if answer.status != 400:
                raise Disappointed(f"quantity {quantity} was answered {answer.status} {answer.code}, not 400")

    async def _buy(self, *, clicks: int) -> Answer:
        """Click so many times at once, each until there is an answer; all must say the same."""
        tries = [self._persist(partial(self._click, 1), what="the purchase") for _ in range(clicks)]
        answers = await asyncio.gather(*tries)
        told = {answer.body.get("order_no") if answer.status == 202 else answer.code for answer in answers}
        if len(told) > 1:
            raise Disappointed(f"two clicks with one ticket were answered {' and '.join(map(str, told))}")
        if answers[0].status == 202 and not self._was_accepted:
            self._was_accepted = True
            self._crowd.accepted += 1
        return answers[0]

    async def _click(self, quantity: float) -> Answer | None:
        return await self._client.purchase(ticket=self._ticket, quantity=quantity)

    async def _follow(self) -> Outcome | None:
        """Poll until the order is there or refused; None when the shop has no trace and wants the ticket again."""
        ask = partial(self._client.ask_status, order_no=self._order_no, ticket=self._ticket)
        attempt = 0
        while True:
            await self._wait(_growing_seconds(attempt), what="the order")
            answer = await self._persist(ask, what="the order")
            state = answer.body.get("state")
            if state in _FINAL:
                return self._outcome(_FINAL[state], answer.body.get("reason", ""))
            if state == "not_reserved":
                self._was_forgotten = True
                return None
            if state not in {"queued", "unknown"}:
                raise Disappointed(f"the poll was answered {answer.status} {state or answer.code}")
            attempt += 1

    async def _persist(self, ask: Callable[[], Awaitable[Answer | None]], *, what: str) -> Answer:
        """Ask the same thing until the answer is more than "later"; an unanswered call is repeated just so."""
        attempt = 0
        while True:
            answer = await ask()
            if answer is not None and not answer.is_passing:
                return answer
            named = None if answer is None else answer.wait_seconds
            why = "no answer" if answer is None else answer.code
            await self._wait(_growing_seconds(attempt) if named is None else named, what=f"{what} ({why})")
            attempt += 1

    async def _wait(self, seconds: float, *, what: str) -> None:
        if self._client.clock.now() + seconds > self._gives_up_at:
            raise Disappointed(f"still no answer about {what} {PATIENCE_SECONDS:.0f} s after the opening")
        await asyncio.sleep(seconds * (1 + random.random() * JITTER))

    def _outcome(self, end: End, reason: str) -> Outcome:
        return Outcome(
            buyer_id=self._shopper.buyer_id,
            order_no=self._order_no,
            was_accepted=self._was_accepted,
            end=end,
            reason=reason,
            was_forgotten=self._was_forgotten,
        )


def _growing_seconds(attempt: int) -> float:
    return min(LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * WAIT_FACTOR**attempt)
