"""Parts g to k: what a shop does with a million buyers behind it, and what that costs who buys. Needs Django set up."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path

from django.db import transaction
from django.utils import timezone

from benchmarks.bench import supply
from benchmarks.bench.figures import Figure, Findings, Goal, Kind, Sample, by_turns
from benchmarks.bench.house import Crowd, House, without_workers
from benchmarks.bench.purchases import Counter, told
from benchmarks.catalogue import OpenedSale
from benchmarks.crowd import fill
from benchmarks.servers import ServersError
from benchmarks.servers.account import Account
from benchmarks.servers.process import Program, Server, free_port
from benchmarks.shop import ROOT
from inventory.services import Kind as MovementKind
from inventory.services import Movement, record
from seckill.gate.connection import raw_client
from seckill.gate.staging import milliseconds
from seckill.models import FlashSale, SaleItem
from seckill.outcomes import account_of
from seckill.rebuild import rebuild_bucket
from seckill.repair import reconcile_and_repair

RECONCILE_TIMES_MAX = 2.0
REBUILD_SECONDS_MAX = 60.0
BLOCKED_MS_MAX = 5.0
ARCHIVE_SECONDS_MAX = 120.0
BYTES_PER_BUYER_MAX = 250.0
MILLION = 1_000_000
RECONCILIATIONS_PER_ROUND = 3
# What Redis notes of slow calls while a rebuild goes on.
SLOW_MICROSECONDS, SLOW_CALLS_MAX = 1_000, 10_000
ALONE, BESIDE = "purchases alone", "purchases while archive and reconcile run"
ARCHIVE_REPORT = Path("var/bench/archive.json")


def crowd_of(house: House, size: int) -> Crowd:
    """Return a sale that so many have bought from, filled at the first call."""
    if size not in house.crowds:
        with house.screen.step(f"Letting {size:,} buyers have bought"):
            sale = supply.open_sale(name=f"crowd of {size:,}", units=size + 1_000)
            before = int(raw_client().info("memory")["used_memory"])
            for _ in fill(bucket=sale.bucket, item_id=sale.item_id, buyers=size):
                pass
            _enter_in_ledger(sale, units=size)
            bytes_each = (int(raw_client().info("memory")["used_memory"]) - before) / size
            house.crowds[size] = Crowd(sale=sale, bytes_each=bytes_each)
    return house.crowds[size]


@transaction.atomic
def _enter_in_ledger(sale: OpenedSale, *, units: int) -> None:
    """Write what was sold past settlement into the ledger, or the books would not balance."""
    sku_id = SaleItem.objects.values_list("sku_id", flat=True).get(pk=sale.item_id)
    account = account_of(item_id=sale.item_id, bucket=sale.bucket)
    reference = f"crowd:{sale.bucket}"
    sold = Movement(sku_id=sku_id, account=account, kind=MovementKind.SALE, units=-units, reference=reference)
    record(movements=[sold], now=timezone.now())


def reconciled(house: House) -> Findings:
    """Part g: seconds of the minute's reconciliation, with few and with many buyers and an empty queue."""
    sizes = house.size.crowds
    with without_workers(house):
        turns: dict[str, Callable[[], Sample]] = {
            f"reconcile {size:,} buyers": partial(_reconcile, crowd_of(house, size)) for size in sizes
        }
        for turn in turns.values():
            turn()  # The first one prepares statements.
        rounds = house.size.rounds * RECONCILIATIONS_PER_ROUND
        found = by_turns(turns, rounds=rounds, before_round=lambda _: None)
    figures = [
        Figure(part="g", name=name, kind=Kind.SECONDS, samples=samples, note="the window of members included")
        for name, samples in found.items()
    ]
    value = figures[-1].value / figures[0].value
    name = f"reconcile with {sizes[-1]:,} ÷ with {sizes[0]:,} buyers"
    return Findings(figures=figures, goals=[Goal(part="g", name=name, value=value, most=RECONCILE_TIMES_MAX)])


def _reconcile(crowd: Crowd) -> Sample:
    began = time.perf_counter()
    report = reconcile_and_repair(bucket=crowd.sale.bucket, clock=timezone.now)
    seconds = time.perf_counter() - began
    return Sample(value=seconds, count=1, wrong=int(report.verdict != "BALANCED"))


def rebuilt(house: House) -> Findings:
    """Part h: seconds of a rebuild from MySQL, and how long it keeps Redis from others at a time."""
    size = house.size.crowds[-1]
    crowd = crowd_of(house, size)
    with without_workers(house):
        name = f"rebuild {size:,} buyers"
        found = by_turns(
            {name: partial(_rebuild, crowd)}, rounds=house.size.rounds, before_round=partial(told, house, "h")
        )
    samples = found[name]
    slowest = [Sample(value=sample.details["slowest_ms"], count=1) for sample in samples]
    figure = Figure(part="h", name=name, kind=Kind.SECONDS, samples=samples)
    blocked = Figure(part="h", name="the longest call of Redis meanwhile", kind=Kind.MILLISECONDS, samples=slowest)
    limit = max(1.0, REBUILD_SECONDS_MAX * size / MILLION)
    return Findings(
        figures=[figure, blocked],
        goals=[
            Goal(part="h", name=f"{name}, s", value=figure.value, most=limit),
            Goal(part="h", name="Redis blocked, ms", value=blocked.value, most=BLOCKED_MS_MAX),
        ],
    )


def _rebuild(crowd: Crowd) -> Sample:
    client = raw_client()
    client.config_set("slowlog-log-slower-than", SLOW_MICROSECONDS)
    client.config_set("slowlog-max-len", SLOW_CALLS_MAX)
    client.slowlog_reset()
    began = time.perf_counter()
    rebuild_bucket(bucket=crowd.sale.bucket, clock=timezone.now)
    seconds = time.perf_counter() - began
    slow = [entry["duration"] / 1_000 for entry in client.slowlog_get(SLOW_CALLS_MAX)]
    left = crowd.sale.units - supply.units_left(crowd.sale)
    wrong = int(left != crowd.sale.units - 1_000)
    return Sample(
        value=seconds, count=1, wrong=wrong, details={"slowest_ms": max(slow, default=0.0), "slow": len(slow)}
    )


def archived(house: House) -> Findings:
    """Part i: seconds of work and memory of an archive: ``make bench-archive``, on servers of its own."""
    buyers = house.size.archived
    command = [sys.executable, "-m", "benchmarks.archive", "--buyers", str(buyers)]
    with house.screen.step(f"Part i: archiving {buyers:,} buyers"):
        done = subprocess.run(
            command, cwd=ROOT, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        if not ARCHIVE_REPORT.exists():
            raise ServersError(f"the archive has failed:\n{done.stdout[-2_000:]}")
    report = json.loads(ARCHIVE_REPORT.read_text())
    seconds, grown = report["archive_seconds"], report["memory_growth_mb"]
    wrong = int("not archived as it ought to be" in report["missed"])
    work = Sample(value=seconds, count=buyers, wrong=wrong)
    limit = max(1.0, ARCHIVE_SECONDS_MAX * buyers / MILLION)
    return Findings(
        figures=[
            Figure(
                part="i",
                name=f"archive {buyers:,} buyers",
                kind=Kind.SECONDS,
                samples=[work],
                note="of work, without rests",
            ),
            Figure(part="i", name="memory it grows by", kind=Kind.MEGABYTES, samples=[Sample(value=grown, count=1)]),
        ],
        goals=[Goal(part="i", name=f"archive {buyers:,} buyers, s of work", value=seconds, most=limit)],
    )


def remembered(house: House) -> Findings:
    """Part j: memory that a settled buyer takes in Redis: his mark, his receipt, and their share of the tables."""
    size = house.size.crowds[-1]
    sample = Sample(value=crowd_of(house, size).bytes_each, count=size)
    figure = Figure(
        part="j", name="Redis for a buyer", kind=Kind.BYTES, samples=[sample], note="used_memory, by buyers"
    )
    return Findings(
        figures=[figure], goals=[Goal(part="j", name=figure.name, value=figure.value, most=BYTES_PER_BUYER_MAX)]
    )


def undisturbed(house: House) -> Findings:
    """Part k: purchases at half the greatest rate, alone and beside an archive and reconciliations, by turns."""
    size = house.size
    middle, last = (crowd_of(house, size.crowds[n]) for n in (-2, -1))
    _end(last)
    with house.screen.step("Part k: finding the pace, and signing tickets"):
        counter = Counter(house, name="k")
        counter.provide(15_000 * size.warm_up_seconds)
        buy = partial(counter.turn, house.shop.web, connections=size.connections)
        rate = max(100.0, buy(seconds=size.warm_up_seconds).value) / 2
        counter.provide(int(2 * size.rounds * (size.seconds * rate * 2 + 2_000)))
    at_half = partial(buy, seconds=size.seconds, delay_ms=max(1, round(1_000 * size.connections / rate)))
    disturber = _disturber(house, archived=last, reconciled=middle)
    disturber.start()
    disturber.pause()

    def beside() -> Sample:
        disturber.resume()
        try:
            return at_half()
        finally:
            disturber.require_running()
            disturber.pause()

    try:
        found = by_turns({ALONE: at_half, BESIDE: beside}, rounds=size.rounds, before_round=partial(told, house, "k"))
    finally:
        disturber.kill()
    return Findings(
        figures=[
            Figure(part="k", name=name, kind=Kind.ACCEPTED, samples=samples, note="at half the greatest rate")
            for name, samples in found.items()
        ]
    )


def _disturber(house: House, *, archived: Crowd, reconciled: Crowd) -> Server:
    """A process that archives one sale, as the worker paces it, and reconciles another each second."""
    bucket = reconciled.sale.bucket
    which = str(archived.sale.sale_id), str(bucket.pool_id), str(bucket.number)
    return Server(
        program=Program(
            executable=sys.executable,
            arguments=(sys.executable, "-m", "benchmarks.bench.disturber", *which),
            port=free_port(),
            directory=ROOT,
            log=(house.directory / "disturber.log").absolute(),
            account=Account(),
            environment={"LOG_LEVEL": "ERROR", **house.environment},
            ready_line=b"at it",
        )
    )


def _end(crowd: Crowd) -> None:
    """Let a sale be over, too short a while ago for the shop's own worker to archive it."""
    before = timezone.now() - timedelta(seconds=1)
    window = {"opens_at": before - timedelta(hours=1), "closes_at": before}
    FlashSale.objects.filter(pk=crowd.sale.sale_id).update(**window)
    said = {"opens_ms": milliseconds(window["opens_at"]), "closes_ms": milliseconds(window["closes_at"])}
    raw_client().hset(crowd.sale.bucket.keys[1], mapping=said)
