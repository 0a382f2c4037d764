"""When to open: as soon as all buyers can have a ticket, by the pace of this machine."""

import asyncio
import statistics
import time
from collections.abc import Sequence

from benchmarks.buyer import TICKET_CALLS_AT_ONCE
from benchmarks.client import Client
from benchmarks.plan import Shopper
from benchmarks.servers import ServersError

# Calls asked for at once. The first of so many open the shop's connections and are not measured.
BATCH = 2 * TICKET_CALLS_AT_ONCE
BATCHES_MEASURED = 5
# Starting the buyers' process and reading its plan.
START_SECONDS = 2.0
# The pace is a guess. Tickets that come after the opening are not wrong, they only thin the rush.
MARGIN = 1.4
WAIT_SECONDS_MAX = 18.0


def seconds_until_all_have_tickets(*, url: str, item_id: int, shoppers: Sequence[Shopper]) -> float:
    """Guess how long a rush of these shoppers needs before it can open, by asking for tickets of another item.

    ServersError when the shop gives none.
    """
    asking = [shoppers[start : start + BATCH] for start in range(0, BATCH * (1 + BATCHES_MEASURED), BATCH)]
    paces = [_seconds_per_ticket(url=url, item_id=item_id, shoppers=batch) for batch in asking if batch]
    pace = statistics.median(paces[1:] or paces)  # One hiccup does not count.
    return min(WAIT_SECONDS_MAX, START_SECONDS + len(shoppers) * pace * MARGIN)


def _seconds_per_ticket(*, url: str, item_id: int, shoppers: Sequence[Shopper]) -> float:
    begun_at = time.monotonic()
    asyncio.run(_ask(url=url, item_id=item_id, shoppers=shoppers))
    return (time.monotonic() - begun_at) / len(shoppers)


async def _ask(*, url: str, item_id: int, shoppers: Sequence[Shopper]) -> None:
    async with Client(url=url, connections_max=TICKET_CALLS_AT_ONCE, opens_at=0) as client:
        asked = (client.ask_ticket(item_id=item_id, shopper=shopper) for shopper in shoppers)
        answers = await asyncio.gather(*asked)
    if not any(answer is not None and "ticket" in answer.body for answer in answers):
        told = {"no answer" if answer is None else f"{answer.status} {answer.code}" for answer in answers}
        raise ServersError(f"the shop gives no tickets, it answers {' and '.join(sorted(told))}")
