"""A sale goes on while its processes are replaced one after another, as for a new version."""

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from http.client import HTTPException
from itertools import count
from pathlib import Path

import pytest
from django.db import connection
from django.utils import timezone

from benchmarks.shop import ROOT
from benchmarks.shop import Shop as ShopProcesses
from orders.models import Order
from seckill.models import SaleItem, Ticket
from seckill.order_numbers import new_order_number
from seckill.reconciliation import Verdict, reconcile_bucket
from seckill.tickets import read_ticket, sign_ticket
from tests.support.front import Front, make_certificate, run_front
from tests.support.shop import Shop, make_buyers, open_sale
from tests.support.state import assert_settled_state
from tests.support.web import wait_until

# Beginning seven processes twice takes its time on a busy machine.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PURCHASES = "/api/v1/purchases/"
PER_SECOND = 300
SECONDS = 30
BUYERS = 10
TRIES_MAX = 20


@dataclass
class Heard:
    """What buyers were answered: the final status of each ticket, and every status there was."""

    final: dict[str, int] = field(default_factory=dict)
    all: list[tuple[int, str]] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)


class Buyers:
    """Buyers on kept connections who call at a steady rate, and repeat after 503 as the guide says."""

    def __init__(self, *, front: Front, tickets: list[str], heard: Heard) -> None:
        self._front, self._tickets, self._heard = front, tickets, heard
        self._next = count()
        self._is_over = threading.Event()
        self._begun_at = time.monotonic()

    def end(self) -> None:
        """Let nobody begin any more."""
        self._is_over.set()

    def run(self) -> None:
        """Buy until it is over; the n-th call leaves at its time."""
        wire = self._front.connect()
        while not self._is_over.is_set():
            number = next(self._next)
            # Its place in the rush, not a hope: the rate is what is asked for.
            time.sleep(max(0.0, self._begun_at + number / PER_SECOND - time.monotonic()))
            # Should the machine be slow, and the tickets be used up, they are sent again.
            ticket = self._tickets[number % len(self._tickets)]
            for _ in range(TRIES_MAX):
                try:
                    body = json.dumps({"ticket": ticket, "quantity": 1})
                    wire.request("POST", PURCHASES, body, {"Host": "127.0.0.1", "Content-Type": "application/json"})
                    answer = wire.getresponse()
                    answer.read()
                except (OSError, HTTPException) as error:
                    self._heard.broken.append(repr(error))
                    wire.close()
                    wire = self._front.connect()
                    continue
                self._heard.all.append((answer.status, answer.getheader("Retry-After") or ""))
                self._heard.final[ticket] = answer.status
                if answer.status != 503:
                    break
                time.sleep(float(answer.getheader("Retry-After") or 1))
        wire.close()


@pytest.fixture
def two_shops(test_environment: Mapping[str, str], tmp_path: Path) -> Iterator[tuple[Front, list[ShopProcesses]]]:
    """Two hosts with web and worker each, one of them with beat, behind one nginx."""
    with ExitStack() as running:
        shops = [
            running.enter_context(
                ShopProcesses(directory=ROOT / "var" / "test" / f"host-{n}", environment=test_environment)
            )
            for n in range(2)
        ]
        for shop in shops:
            shop.web.launch()
            shop.worker.launch()
        shops[0].beat.launch()
        for server in (*(shop.web for shop in shops), *(shop.worker for shop in shops), shops[0].beat):
            server.await_ready()
        ports = [shop.web.port for shop in shops]
        certificate = make_certificate(tmp_path_with(tmp_path, "tls"))
        yield running.enter_context(run_front(certificate=certificate, directory=tmp_path, upstreams=ports)), shops


def many_tickets(sale: Shop, number: int) -> list[str]:
    """Make one ticket each for so many new buyers, by a few statements."""
    item = SaleItem.objects.select_related("pool__sale").get(pk=sale.item.pk)
    rows = [
        Ticket(
            order_no=new_order_number(sale.bucket),
            pool_id=sale.pool.pk,
            item_id=item.pk,
            buyer_id=buyer.pk,
            limit_key=str(buyer.pk),
            issued_at=timezone.now(),
        )
        for buyer in make_buyers(number)
    ]
    Ticket.objects.bulk_create(rows, batch_size=1_000)
    return [sign_ticket(order_no=r.order_no, item=item, buyer_id=r.buyer_id, key=r.limit_key) for r in rows]


def tmp_path_with(path: Path, name: str) -> Path:
    made = path / name
    made.mkdir()
    return made


def test_every_process_is_replaced_in_the_middle_of_a_sale(two_shops: tuple[Front, list[ShopProcesses]]) -> None:
    front, shops = two_shops
    number = PER_SECOND * SECONDS
    sale, heard = open_sale(units=number), Heard()
    buyers = Buyers(front=front, tickets=many_tickets(sale, number), heard=heard)
    threads = [threading.Thread(target=buyers.run) for _ in range(BUYERS)]
    for thread in threads:
        thread.start()
    for shop in shops:
        shop.web.restart()
        shop.worker.restart()
    shops[0].beat.restart()
    buyers.end()
    for thread in threads:
        thread.join()
    assert heard.broken == []
    assert {status for status, _ in heard.all} <= {202, 503}
    assert all(wait for status, wait in heard.all if status == 503)
    assert set(heard.final.values()) == {202}
    # This process's own connection was idle all the while.
    connection.close()
    sold = len(heard.final)
    wait_until(lambda: Order.objects.count() == sold, seconds=30)
    assert set(Order.objects.values_list("number", flat=True)) == {read_ticket(t).order_no for t in heard.final}
    assert_settled_state(sale, sold=sold)
    assert reconcile_bucket(bucket=sale.bucket, clock=timezone.now).verdict is Verdict.BALANCED
