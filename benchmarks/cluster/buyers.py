"""One process of buyers: takes tickets from a file and buys over the event loop, as the fast lane does.

Called as ``python -m benchmarks.cluster.buyers FILE SKIP STEP``; prints one line of JSON.
"""

import asyncio
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path

AT_ONCE = 64


def main() -> None:
    """Buy with every STEPth ticket of a file."""
    import django

    os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
    django.setup()
    path, skip, step = sys.argv[1:]
    tickets = Path(path).read_text().splitlines()[int(skip) :: int(step)]
    print(json.dumps(asyncio.run(_buy_all(tickets))))


async def _buy_all(tickets: list[str]) -> dict[str, float]:
    answers: Counter[str] = Counter()
    waiting = iter(tickets[AT_ONCE:])
    await asyncio.gather(*(_buy(ticket, answers) for ticket in tickets[:AT_ONCE]))  # Connections are made here.
    began, cpu = time.perf_counter(), time.process_time()

    async def go_on() -> None:
        for ticket in waiting:
            await _buy(ticket, answers)

    await asyncio.gather(*(go_on() for _ in range(AT_ONCE)))
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu
    count = len(tickets) - AT_ONCE
    return {
        "bought": answers["bought"],
        "other": answers["other"],
        "count": count,
        "seconds": seconds,
        "cpu": cpu_seconds,
    }


async def _buy(ticket: str, answers: Counter[str]) -> None:
    from seckill.errors import PurchaseRefused
    from seckill.purchase import apurchase

    try:
        await apurchase(ticket=ticket, quantity=1)
    except PurchaseRefused:
        answers["other"] += 1
    else:
        answers["bought"] += 1


if __name__ == "__main__":
    main()
