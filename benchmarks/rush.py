"""The rush: all buyers of a plan at once, in a process of its own so that it shares no interpreter with the shop.

Run as ``python -m benchmarks.rush PARENT`` it reads a plan from standard input and writes one JSON object a line:
progress, and at the end the result. It ends with its parent, whose process id it is given, and knows nothing of the
shop but its HTTP API.
"""

import asyncio
import json
import sys
from collections.abc import Callable, Sequence

from benchmarks.buyer import Buyer, Crowd
from benchmarks.client import Client
from benchmarks.plan import Outcome, Plan, Progress, Result
from benchmarks.servers.process import end_with_parent

TICK_SECONDS = 0.05
# The clock may still be corrected while tickets are asked for, so nobody sleeps through to the opening at once.
NAP_SECONDS = 0.5


async def rush(plan: Plan, *, on_progress: Callable[[Progress], None]) -> Result:
    """Play all buyers to their ends; `on_progress` is called every TICK_SECONDS."""
    async with Client(url=plan.url, connections_max=plan.connections_max, opens_at=plan.opens_at) as client:
        crowd = Crowd(plan=plan, client=client)
        attendants = [asyncio.create_task(_open(crowd)), asyncio.create_task(_tell(crowd, on_progress))]
        outcomes = await asyncio.gather(*(Buyer(shopper=shopper, crowd=crowd).play() for shopper in plan.shoppers))
        for attendant in attendants:
            attendant.cancel()
        on_progress(crowd.progress)
        return _result(crowd, outcomes)


async def _open(crowd: Crowd) -> None:
    """Let the buyers off at the opening, by the shop's clock."""
    while (seconds := crowd.plan.opens_at - crowd.client.clock.now()) > 0:
        await asyncio.sleep(min(seconds, NAP_SECONDS))
    crowd.opening.set()


async def _tell(crowd: Crowd, on_progress: Callable[[Progress], None]) -> None:
    while True:
        on_progress(crowd.progress)
        await asyncio.sleep(TICK_SECONDS)


def _result(crowd: Crowd, outcomes: Sequence[Outcome]) -> Result:
    measured = crowd.client.measured
    return Result(
        outcomes=tuple(outcomes),
        latencies_ms=tuple(sorted(measured.latencies_ms)),
        answers=dict(measured.answers),
        last_answer_at=measured.last_answer_at,
        last_accepted_at=measured.last_accepted_at,
        last_ticket_at=crowd.last_ticket_at,
        trouble_at=measured.trouble_at,
        well_again_at=measured.well_again_at,
    )


def _write(**line: object) -> None:
    print(json.dumps(line), flush=True)


def main() -> None:
    """Run the plan of standard input."""
    end_with_parent(int(sys.argv[1]))
    plan = Plan.from_json(json.load(sys.stdin))
    result = asyncio.run(rush(plan, on_progress=lambda progress: _write(progress=vars(progress))))
    _write(result=result.to_json())


if __name__ == "__main__":
    main()
