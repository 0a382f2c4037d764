"""Peers: other programs that sell a unit, loaded by turns with the shop by a program outside of this project."""

import json
import os
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.bench import supply, wrk
from benchmarks.bench.house import House, url_of, wait_until_empty
from benchmarks.bench.purchases import PURCHASES, Counter

# Where it may be found; nothing here depends on it.
USUAL_PLACE = Path("../shared/peers/compare")
TICKETS_PER_SECOND_MAX = 20_000


def compared(house: House, *, program: Path) -> list[dict[str, Any]]:
    """Let the program load its peers and the shop, each round with an empty queue before it; return what it says.

    It is called with ``--url``, ``--wrk-script``, ``--rounds``, ``--seconds`` and ``--connections`` and prints JSON.
    """
    size = house.size
    counter = Counter(house, name="peers")
    told = []
    for number in range(size.rounds):
        counter.provide(TICKETS_PER_SECOND_MAX * size.seconds)
        with house.screen.step(f"Peers: round {number + 1} of {size.rounds}"):
            told.append(_round(house, program=program, counter=counter))
            wait_until_empty(partial(supply.queue_length, counter.sale))
    return told


def _round(house: House, *, program: Path, counter: Counter) -> dict[str, Any]:
    size = house.size
    url = url_of(house.shop.web, PURCHASES)
    options = ["--rounds", "1", "--seconds", str(size.seconds), "--connections", str(size.connections)]
    done = subprocess.run(
        [str(program), "--url", url, "--wrk-script", wrk.PURCHASES, *options],
        env={**os.environ, **wrk.tickets(counter.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        return {"error": (done.stderr or done.stdout).strip()[-500:]}
    said: dict[str, Any] = json.loads(done.stdout)
    return said
