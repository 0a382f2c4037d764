"""Parts e and f: reservations become orders, in batches, one by one, and while buyers go on. Needs Django set up."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median

from django.utils import timezone

from benchmarks.bench import supply, wrk
from benchmarks.bench.figures import Figure, Findings, Goal, Kind, Sample, by_turns, ratio
from benchmarks.bench.house import House, cpu_seconds, url_of, wait_until_empty, without_workers
from benchmarks.bench.purchases import PURCHASES, told
from benchmarks.bench.tasks import QUEUE, settle_one
from benchmarks.catalogue import OpenedSale
from benchmarks.servers.account import Account
from benchmarks.servers.process import Program, Server, free_port
from benchmarks.shop import ROOT, WORKER_READY
from config.celery import app
from orders.models import Order
from seckill.gate import gate
from seckill.gate.connection import raw_client
from seckill.gate.entries import QueueEntry
from seckill.settlement import settle_bucket
from seckill.tasks import settle

BATCHES, ONE_BY_ONE = "in batches", "a task and a transaction for each"
MICROSECONDS = 1_000_000
ORDERS_PER_SECOND_MIN = 4_000
TIMES_ONE_BY_ONE_MIN = 12
DRAIN_SECONDS_MAX = 30.0
CONNECTIONS_MEANWHILE = 16
SLICE_SECONDS = 3


@contextmanager
def one_worker(house: House) -> Iterator[Server]:
    """Run one worker process in place of the shop's, for the length of the block, with nobody else at the queues."""
    celery = (sys.executable, "-m", "celery", "-A", "config", "worker", "--include=benchmarks.bench.tasks")
    options = (f"--queues={QUEUE},settle", "--concurrency=1", "--hostname=bench@%h", "--loglevel=INFO")
    quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat")
    program = Program(
        executable=sys.executable,
        arguments=(*celery, *options, *quiet),
        port=free_port(),
        directory=ROOT,
        log=(house.directory / "one-worker.log").absolute(),
        account=Account(),
        environment={"LOG_LEVEL": "INFO", **house.environment},
        ready_line=WORKER_READY,
    )
    worker = Server(program=program)
    with without_workers(house):
        try:
            worker.start()
            yield worker
        finally:
            worker.stop()


def settled(house: House) -> Findings:
    """Part e: orders a second, and the processor time of each, by one worker."""
    size = house.size
    buyers = supply.buyer_ids(max(size.orders_in_batches, size.orders_one_by_one))
    with one_worker(house) as worker:
        turns = {
            BATCHES: partial(_in_batches, house, worker, buyers=buyers[: size.orders_in_batches]),
            ONE_BY_ONE: partial(_one_by_one, house, worker, buyers=buyers[: size.orders_one_by_one]),
        }
        _in_batches(house, worker, buyers=buyers[:500])  # The first batch imports and connects.
        found = by_turns(turns, rounds=size.rounds, before_round=partial(told, house, "e"))
    figures = [
        Figure(
            part="e", name=name, kind=Kind.SETTLED, samples=samples, note="one worker process, nobody buys meanwhile"
        )
        for name, samples in found.items()
    ]
    batches, one_by_one = figures
    work = [
        Figure(
            part="e",
            name=f"{whose}'s work for an order",
            kind=Kind.MICROSECONDS,
            samples=_details(found[BATCHES], name),
        )
        for whose, name in (("worker", "worker_us"), ("database", "database_us"))
    ]
    return Findings(
        figures=[*figures, *work],
        goals=[
            Goal(part="e", name="orders settled/s by one worker", value=batches.value, least=ORDERS_PER_SECOND_MIN),
            Goal(
                part="e",
                name="in batches ÷ one by one",
                value=ratio(batches.samples, one_by_one.samples),
                least=TIMES_ONE_BY_ONE_MIN,
            ),
        ],
    )


def _details(samples: list[Sample], name: str) -> list[Sample]:
    return [Sample(value=sample.details[name], count=sample.count) for sample in samples]


def _in_batches(house: House, worker: Server, *, buyers: list[int]) -> Sample:
    """Fill a queue, then let the worker settle it."""
    sale = supply.open_sale(name="e-batches", units=len(buyers))
    supply.reserve_for(sale=sale, buyers=buyers)
    worker.pause()
    settle.apply_async((sale.bucket.pool_id, sale.bucket.number))
    return _timed(house, worker, count=len(buyers), length=partial(supply.queue_length, sale))


def _one_by_one(house: House, worker: Server, *, buyers: list[int]) -> Sample:
    """Send a task for each reservation, then let the worker do them."""
    sale = supply.open_sale(name="e-one-by-one", units=len(buyers))
    supply.reserve_for(sale=sale, buyers=buyers)
    entries = [
        e for e in gate.snapshot(bucket=sale.bucket, entries_max=len(buyers)).entries if isinstance(e, QueueEntry)
    ]
    worker.pause()
    with app.producer_pool.acquire() as producer:
        for e in entries:
            order = e.order_no, e.item_id, e.buyer_id, e.epoch, e.seq, str(e.price)
            settle_one.apply_async(order, producer=producer, queue=QUEUE)
    missing = partial(_missing_orders, sale, len(buyers))
    sample = _timed(house, worker, count=len(buyers), length=missing)
    settle_bucket(bucket=sale.bucket, clock=timezone.now)  # They are in MySQL: this tells Redis so.
    return sample


def _missing_orders(sale: OpenedSale, count: int) -> int:
    """Orders of a sale that are not there yet, as its order numbers say, which begin alike."""
    first = f"{sale.bucket.pool_id}-{sale.bucket.number}-"
    return count - Order.objects.filter(number__gte=first, number__lt=f"{first[:-1]}.").count()


def _timed(house: House, worker: Server, *, count: int, length: Callable[[], int]) -> Sample:
    """Let a paused worker go on and wait until nothing is left."""
    pids = {"worker_us": worker.pid, "database_us": house.servers.database.pid}
    before = {name: cpu_seconds(pid) for name, pid in pids.items()}
    worker.resume()
    seconds = wait_until_empty(length)
    spent = {name: (cpu_seconds(pid) - before[name]) / count * MICROSECONDS for name, pid in pids.items()}
    return Sample(value=count / seconds, count=count, details={"seconds": seconds, **spent})


def drained(house: House) -> Findings:
    """Part f: a long queue, drained by one worker while buyers go on."""
    size = house.size
    with one_worker(house) as worker:
        with house.screen.step(f"Part f: making {size.drained:,} reservations"):
            sale, tickets = _long_queue(house)
        worker.pause()
        settle.apply_async((sale.bucket.pool_id, sale.bucket.number))
        with house.screen.step("Part f: draining them while others buy"):
            sample = _drain(house, worker, sale=sale, tickets=tickets)
    figure = Figure(
        part="f",
        name=f"{size.drained:,} drained, {size.bought_meanwhile_per_second} bought/s",
        kind=Kind.SECONDS,
        samples=[sample],
        note="until the last of those that waited at the beginning is in MySQL; p50 and p99 of the purchases meanwhile",
    )
    limit = DRAIN_SECONDS_MAX * size.drained / 100_000
    return Findings(figures=[figure], goals=[Goal(part="f", name=f"{figure.name}, s", value=figure.value, most=limit)])


def _long_queue(house: House) -> tuple[OpenedSale, Path]:
    """Fill a queue, and write the tickets of those who buy while it is drained."""
    size = house.size
    meanwhile = int(DRAIN_SECONDS_MAX) * 4 * size.bought_meanwhile_per_second
    buyers = supply.buyer_ids(size.drained + meanwhile)
    sale = supply.open_sale(name="f", units=len(buyers))
    supply.reserve_for(sale=sale, buyers=buyers[: size.drained])
    path = supply.write_tickets(sale=sale, buyers=buyers[size.drained :], path=house.directory / "f.tickets")
    return sale, path


def _drain(house: House, worker: Server, *, sale: OpenedSale, tickets: Path) -> Sample:
    """Let the worker go on and buyers come, until the last of the reservations made before is settled."""
    slices: list[wrk.Load] = []
    is_over = threading.Event()

    def buy() -> None:
        while not is_over.is_set():
            slices.append(
                wrk.load(
                    url_of(house.shop.web, PURCHASES),
                    seconds=SLICE_SECONDS,
                    connections=CONNECTIONS_MEANWHILE,
                    script=wrk.PURCHASES,
                    variables=wrk.tickets(
                        tickets, delay_ms=1_000 * CONNECTIONS_MEANWHILE / house.size.bought_meanwhile_per_second
                    ),
                )
            )

    buying = threading.Thread(target=buy)
    buying.start()
    try:
        worker.resume()
        seconds = wait_until_empty(partial(_unsettled, sale, house.size.drained))
    finally:
        is_over.set()
        buying.join()
    bought = sum(part.requests for part in slices)
    return Sample(
        value=seconds,
        count=house.size.drained,
        p50_ms=median(part.p50_ms for part in slices),
        p99_ms=median(part.p99_ms for part in slices),
        not_2xx=sum(part.not_2xx for part in slices),
        wrong=sum(part.not_2xx for part in slices),
        lost=sum(part.lost for part in slices),
        details={"bought_per_second": bought / sum(part.seconds for part in slices), "bought": bought},
    )


def _unsettled(sale: OpenedSale, count: int) -> int:
    """How many of the first so many reservations MySQL does not have."""
    return max(0, count - int(raw_client().hget(sale.bucket.keys[1], "settled_seq") or 0))
