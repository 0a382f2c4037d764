"""One turn of the measurement, in a process of its own, since the settings name one stock. Prints one line of JSON.

``python -m benchmarks.cluster.turn buy DIRECTORY PURCHASES`` or ``… failover``.
"""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

BUCKETS = 12
PROCESSES = 2
SWEEP_SECONDS = 1.0


def main() -> None:
    """Measure what the arguments say."""
    import django

    os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
    django.setup()
    what, *arguments = sys.argv[1:]
    told = _buy(directory=Path(arguments[0]), purchases=int(arguments[1])) if what == "buy" else _failover()
    print(json.dumps(told))


def _open(*, units: int, buckets: int) -> Any:
    from django.utils import timezone

    from benchmarks.catalogue import schedule_sale, stock_catalogue
    from seckill.models import FlashSale, SalePool
    from seckill.preheat import preheat_sale
    from seckill.states import SaleState

    stock_catalogue()
    # Those of earlier turns are over: their Redis is gone, and the sweep would bring them into this one.
    FlashSale.objects.update(state=SaleState.ARCHIVED)
    sale = schedule_sale(name="nodes", units=units, opens_at=timezone.now())
    SalePool.objects.filter(pk=sale.bucket.pool_id).update(max_queue=units, bucket_count=buckets)
    preheat_sale(sale_id=sale.sale_id, clock=timezone.now)
    return sale


def _tickets(sale: Any, *, count: int, buckets: int) -> list[str]:
    from benchmarks.bench.supply import buyer_ids
    from seckill.models import SaleItem
    from seckill.order_numbers import new_order_number
    from seckill.placing import bucket_for
    from seckill.tickets import sign_ticket

    item = SaleItem.objects.select_related("pool__sale").get(pk=sale.item_id)
    pool = sale.bucket.pool_id
    places = {buyer: bucket_for(pool_id=pool, key=str(buyer), buckets=buckets) for buyer in buyer_ids(count)}
    return [
        sign_ticket(order_no=new_order_number(place), item=item, buyer_id=buyer, key=str(buyer))
        for buyer, place in places.items()
    ]


def _buy(*, directory: Path, purchases: int) -> dict[str, Any]:
    """Let two processes of buyers buy, then settle it all; tell the rate, the nodes' shares and what each cost."""
    from django.utils import timezone

    from seckill.gate.keys import BucketRef
    from seckill.gate.nodes import masters
    from seckill.settlement import settle_bucket

    sale = _open(units=purchases * 2, buckets=BUCKETS)
    path = directory / "tickets"
    path.write_text("\n".join(_tickets(sale, count=purchases, buckets=BUCKETS)))
    nodes = list(masters())
    for _, client in nodes:
        client.config_resetstat()
    before = {name: _cpu(client) for name, client in nodes}
    loads = _run_buyers(path)
    told = [_node(client, name, before[name]) for name, client in nodes]
    began, cpu = time.perf_counter(), time.process_time()
    buckets = [BucketRef(pool_id=sale.bucket.pool_id, number=number) for number in range(BUCKETS)]
    settled = sum(settle_bucket(bucket=bucket, clock=timezone.now).entries for bucket in buckets)
    return {
        "nodes": told,
        "bought": sum(load["bought"] for load in loads),
        "other": sum(load["other"] for load in loads),
        "per_second": sum(load["count"] / load["seconds"] for load in loads),
        "client_cpu_us": 1e6 * sum(load["cpu"] for load in loads) / sum(load["count"] for load in loads),
        "settled_per_second": settled / (time.perf_counter() - began),
        "settle_cpu_us": 1e6 * (time.process_time() - cpu) / max(1, settled),
    }


def _run_buyers(path: Path) -> list[dict[str, float]]:
    command = [sys.executable, "-m", "benchmarks.cluster.buyers", str(path)]
    running = [
        subprocess.Popen([*command, str(number), str(PROCESSES)], stdout=subprocess.PIPE) for number in range(PROCESSES)
    ]
    return [json.loads(process.communicate()[0]) for process in running]


def _cpu(client: Any) -> float:
    info = client.info("cpu")
    return float(info["used_cpu_user"] + info["used_cpu_sys"])


def _node(client: Any, name: str, cpu_before: float) -> dict[str, Any]:
    stats = client.info("commandstats").get("cmdstat_evalsha", {"calls": 0, "usec": 0})
    calls = int(stats["calls"])
    return {
        "name": name,
        "calls": calls,
        "script_us": stats["usec"] / max(1, calls),
        "cpu_us": 1e6 * (_cpu(client) - cpu_before) / max(1, calls),
    }


def _failover() -> dict[str, float]:
    """Buy until told, by a line on standard input, that a master was killed; tell when it was noticed and over."""
    from seckill.errors import GateUnavailable
    from seckill.purchase import purchase

    sale = _open(units=1_000_000, buckets=1)
    tickets = iter(_tickets(sale, count=20_000, buckets=1))
    is_over, killed = threading.Event(), threading.Event()
    threading.Thread(target=_sweep, args=(is_over,), daemon=True).start()
    print(json.dumps({"key": sale.bucket.keys[0]}), flush=True)
    threading.Thread(target=_set_when_told, args=(killed,), daemon=True).start()
    killed_at = promoted_at = 0.0
    refused = 0
    ticket = next(tickets)
    while True:
        if killed.is_set() and not killed_at:
            killed_at = time.monotonic()
        try:
            purchase(ticket=ticket, quantity=1)
            ticket = next(tickets)
            if killed_at and refused:
                break
        except GateUnavailable as error:
            refused += bool(killed_at)
            if killed_at and not promoted_at and "reserve" not in str(error):
                promoted_at = time.monotonic()
        time.sleep(0.01)
    is_over.set()
    now = time.monotonic()
    return {"promoted": (promoted_at or now) - killed_at, "sold_again": now - killed_at, "refused": refused}


def _set_when_told(killed: threading.Event) -> None:
    sys.stdin.readline()
    killed.set()


def _sweep(is_over: threading.Event) -> None:
    from django.utils import timezone

    from seckill.errors import GateUnavailable, RebuildRefused
    from seckill.recovery import rebuild_automatically
    from seckill.settlement import settle_bucket
    from seckill.sweep import look_over

    while not is_over.wait(SWEEP_SECONDS):
        found = look_over(now=timezone.now())
        try:
            for bucket in found.to_rebuild:
                rebuild_automatically(bucket=bucket, clock=timezone.now)
            for bucket in found.to_settle:
                settle_bucket(bucket=bucket, clock=timezone.now)
        except (GateUnavailable, RebuildRefused):
            continue


if __name__ == "__main__":
    main()
