"""Measure the stock on 1, 3 and 6 Redis nodes by turns, and a failover: ``make bench-cluster``; var/bench/cluster.json.

All nodes, buyers and MySQL share this machine, so what is told of is how the calls spread over the nodes and what a
purchase costs each of them. More nodes are no faster here than one: they take the same processors from the buyers.
"""

import argparse
import json
import os
import subprocess
import sys
from collections import defaultdict
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from redis.crc import key_slot

from benchmarks.screen import Screen
from benchmarks.servers import PrivateServers, ServersError
from benchmarks.servers.redis_cluster import redis_cluster
from benchmarks.stage import run_on_stage

DIRECTORY = Path("var/bench/cluster")
REPORT = Path("var/bench/cluster.json")
MASTERS = (1, 3, 6)
ALONE = "one server"
NODE_TIMEOUTS_MS = (1_000, 5_000)


def main() -> int:
    """Measure; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=__doc__)
    parser.add_argument("--purchases", type=int, default=6_000, help="in each turn")
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    return run_on_stage("measurement", partial(_run, purchases=arguments.purchases, rounds=arguments.rounds))


def _run(screen: Screen, *, purchases: int, rounds: int) -> int:
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    turns: dict[str, list[dict[str, Any]]] = defaultdict(list)
    with PrivateServers(directory=DIRECTORY / "servers", is_fresh=True) as servers:
        environment = {**os.environ, **servers.environment(), "LOG_LEVEL": "CRITICAL", "SANDBOX": "1"}
        with screen.step("Making the tables"):
            subprocess.run([sys.executable, "manage.py", "migrate", "--verbosity=0"], env=environment, check=True)
        for number in range(rounds):
            with screen.step(f"Round {number + 1} of {rounds}"):
                turns[ALONE].append(_turn(environment, purchases))
                for masters in MASTERS:
                    with redis_cluster(directory=DIRECTORY / "nodes", masters=masters, replicas_each=0) as cluster:
                        turn = _turn({**environment, "STOCK_REDIS_URL": cluster.url}, purchases)
                    turns[f"{masters} of a cluster"].append(turn)
        with screen.step("Killing masters"):
            failovers = {
                timeout: [_failover(environment, timeout) for _ in range(rounds)] for timeout in NODE_TIMEOUTS_MS
            }
    REPORT.write_text(json.dumps({"turns": turns, "failovers": failovers}, indent=1))
    _show(screen, turns, failovers)
    return 0


def _turn(environment: dict[str, str], purchases: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.cluster.turn", "buy", str(DIRECTORY), str(purchases)]
    told: dict[str, Any] = json.loads(subprocess.check_output(command, env=environment).splitlines()[-1])
    return told


def _failover(environment: dict[str, str], timeout_ms: int) -> dict[str, float]:
    options = ("--cluster-node-timeout", str(timeout_ms))
    with ExitStack() as running:
        place = DIRECTORY / "nodes"
        cluster = running.enter_context(redis_cluster(directory=place, masters=3, replicas_each=1, options=options))
        process = running.enter_context(
            subprocess.Popen(
                [sys.executable, "-m", "benchmarks.cluster.turn", "failover"],
                env={**environment, "STOCK_REDIS_URL": cluster.url},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        if process.stdin is None or process.stdout is None:
            raise ServersError("a process without pipes")
        key = json.loads(process.stdout.readline())["key"]
        cluster.owner(key_slot(key.encode())).kill()
        process.stdin.write("killed\n")
        process.stdin.flush()
        told: dict[str, float] = json.loads(process.stdout.readline())
        return told


def _show(screen: Screen, turns: dict[str, list[dict[str, Any]]], failovers: dict[int, list[dict[str, float]]]) -> None:
    for name, told in turns.items():
        shares = [sorted((node["calls"] for node in turn["nodes"]), reverse=True) for turn in told]
        total = sum(map(sum, shares))
        largest = max(share[0] / sum(share) for share in shares)
        cpu = median(node["cpu_us"] for turn in told for node in turn["nodes"])
        script = median(node["script_us"] for turn in told for node in turn["nodes"])
        screen.line(
            f"{name}: {median(turn['per_second'] for turn in told):,.0f} purchases/s,"
            f" {median(turn['client_cpu_us'] for turn in told):.0f} µs of a web process and {cpu:.0f} µs of a node each"
            f" (script {script:.0f} µs); calls per node {shares[-1]}, the largest share {largest:.0%} of {total:,};"
            f" settled {median(turn['settled_per_second'] for turn in told):,.0f}/s,"
            f" {median(turn['settle_cpu_us'] for turn in told):.0f} µs of a worker each"
        )
    for timeout, runs in failovers.items():
        sold = sorted(run["sold_again"] for run in runs)
        screen.line(
            f"failover, cluster-node-timeout {timeout} ms: sold again after {', '.join(f'{s:.1f}' for s in sold)} s"
        )


if __name__ == "__main__":
    sys.exit(main())
