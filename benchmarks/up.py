"""The shop of the demo, kept running: a sale opens a minute after the start, and a visitor can race the rivals for it.

It runs until Ctrl-C and keeps its data under ``var/up`` for the next time.
"""

import argparse
import signal
import sys
import time
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.leaving import leave_if_told
from benchmarks.plan import End, Plan
from benchmarks.screen import Screen
from benchmarks.shop import Shop, is_free
from benchmarks.stage import Stage, run_on_stage, running_shop

if TYPE_CHECKING:
    from benchmarks.catalogue import OpenedSale

DIRECTORY = Path("var/up")
USUAL_PORT = 8000
OPENS_IN = timedelta(seconds=60)
RIVALS = 300
UNITS = 100
# Rivals as slow as people leave a visitor who is quick some seconds to win.
REACTION_SECONDS = 20.0
LOOK_SECONDS = 1.0

HINTS = """
The shop      {url}/sales/{sale_id}/
The operator  {url}/admin/   {operator} / {password}
The API       {url}/api/v1/docs/
On sale       {item}: {units} units, one a buyer, from {opens_at}

Win one before the {rivals} rivals have them all: open the shop, make an account, and click when the button comes alive.
Or paste the first command now and the second when the sale opens; its answer has the number to ask for, with the
third, what became of it:

TICKET=$(curl -s -X POST {url}/api/v1/items/{item_id}/ticket/ -H 'X-CSRFToken: {csrf}' \\
  -b 'csrftoken={csrf}; sessionid={session}' | sed 's/.*"ticket":"\\([^"]*\\)".*/\\1/')

curl -s {url}/api/v1/purchases/ -H 'Content-Type: application/json' \\
  -d '{{"ticket": "'$TICKET'", "quantity": 1}}'

curl -s -H "Authorization: Ticket $TICKET" {url}/api/v1/purchases/ORDER_NO/

Ctrl-C stops everything.
"""


def main() -> int:
    """Run the shop; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.up", description=__doc__)
    parser.add_argument("--port", type=int, help=f"where to listen ({USUAL_PORT}, or a free one if that is taken)")
    port = parser.parse_args().port
    if port is None and is_free(USUAL_PORT):
        port = USUAL_PORT
    status = run_on_stage("shop", partial(_keep_open, port=port))
    return 0 if status == 128 + signal.SIGINT else status  # Ctrl-C is how it is meant to end.


def _keep_open(screen: Screen, *, port: int | None) -> int:
    with running_shop(directory=DIRECTORY, screen=screen, is_fresh=False, port=port) as stage:
        _sell(stage=stage, screen=screen)
        screen.doing = "waiting for visitors"
        while True:
            leave_if_told()
            stage.require_running()
            time.sleep(LOOK_SECONDS)


def _sell(*, stage: Stage, screen: Screen) -> None:
    """Announce a sale, let the rivals in, and say how it went."""
    from django.utils import timezone  # What follows needs Django, which the stage has set up by now.

    from benchmarks.accounts import make_buyers
    from benchmarks.catalogue import schedule_sale
    from benchmarks.sale import OrderWatch, make_shoppers, preheat, rush
    from benchmarks.verdict import law_7_text, read_books

    with screen.step(f"Preheating {UNITS} units, logging in {RIVALS} rivals"):
        shoppers = make_shoppers(make_buyers(RIVALS, prefix="rival"))
        sale = schedule_sale(name="限时秒杀 · Flash sale", units=UNITS, opens_at=timezone.now() + OPENS_IN)
        preheat(sale)
        _dress()
    screen.console.print(_hints(shop=stage.shop, sale=sale), markup=False, soft_wrap=True)
    plan = Plan(
        url=stage.shop.url,
        item_id=sale.item_id,
        opens_at=sale.opens_at.timestamp(),
        shoppers=shoppers,
        reaction_seconds=REACTION_SECONDS,
    )
    watch = OrderWatch(sale.bucket)
    result = rush(
        plan=plan, units=UNITS, watch=watch, stage=stage, screen=screen, log=DIRECTORY / "shop" / "buyers.log"
    )
    watch.wait_until_settled()
    won = sum(1 for outcome in result.outcomes if outcome.end is End.CONFIRMED)
    books = read_books(bucket=sale.bucket, item_id=sale.item_id)
    screen.console.print(
        f"The rivals have {won} of {UNITS} units, visitors {watch.orders - won}. {law_7_text(books)} (law 7)\n"
        f"The shop stays open at {stage.shop.url} until Ctrl-C.",
        markup=False,
        soft_wrap=True,
    )


def _dress() -> None:
    """Fill the other windows, if they are empty."""
    from django.utils import timezone

    from benchmarks.catalogue import dress_windows
    from seckill.preheat import preheat_sale

    if (sale := dress_windows(now=timezone.now())) is not None:
        preheat_sale(sale_id=sale.pk, clock=timezone.now)


def _hints(*, shop: Shop, sale: "OpenedSale") -> str:
    from django.utils import timezone

    from benchmarks.accounts import OPERATOR, log_in, make_buyers, operator_password

    visitor = log_in(make_buyers(1, prefix="visitor"))[0]
    return HINTS.format(
        url=shop.url,
        operator=OPERATOR,
        password=operator_password(directory=DIRECTORY),
        item=sale.item_name,
        sale_id=sale.sale_id,
        item_id=sale.item_id,
        units=sale.units,
        opens_at=f"{timezone.localtime(sale.opens_at):%H:%M:%S %Z}",
        rivals=RIVALS,
        csrf=visitor.csrf,
        session=visitor.session,
    )


if __name__ == "__main__":
    sys.exit(main())
