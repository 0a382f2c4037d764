"""Parts a, b, c and l: what buyers are answered over HTTP, a kind of answer at a time. Needs Django set up."""

import json
from collections.abc import Callable
from functools import partial
from http.client import HTTPConnection
from pathlib import Path

from benchmarks.bench import supply, wrk
from benchmarks.bench.figures import Figure, Findings, Goal, Kind, Sample, by_turns, ratio
from benchmarks.bench.house import House, url_of, wait_until_empty, without_workers
from benchmarks.bench.volley import LOST, fire
from benchmarks.catalogue import OpenedSale
from benchmarks.leaving import leave_if_told
from benchmarks.report import percentile
from benchmarks.servers import ServersError
from benchmarks.servers.process import HOST, Server

PURCHASES = "/api/v1/purchases/"
HELLO = "/hello"
LANE, DJANGO, BARE = "the shop", "the shop with FAST_LANE=0", "a bare answer of the same Granian"
HALF = "the shop at half that rate"
# A machine that is held up while it warms up must not run out of tickets; each turn skips two thousand.
RATE_MIN, SPARE_TICKETS = 1_000, 20_000
# A first guess of what a turn uses up, before the warm-up has shown the pace.
FIRST_TICKETS = 4_000
P99_MS_MAX = 12.0
VOLLEY_P99_MS_MAX = 1_000.0


class Counter:
    """A sale, the file of its tickets and who has none of them yet: what a load on one server buys from."""

    def __init__(self, house: House, *, name: str) -> None:
        self._house = house
        self.path = house.directory / f"{name}.tickets"
        self.units = 1_000_000
        self.sale = supply.open_sale(name=name, units=self.units)
        self._written = 0

    def provide(self, count: int) -> None:
        """Make sure that so many tickets are unused."""
        missing = count - (self._written - supply.used_tickets(self.path))
        if missing > 0:
            buyers = supply.buyer_ids(self._written + missing)[self._written :]
            supply.write_tickets(sale=self.sale, buyers=buyers, path=self.path, is_added=self._written > 0)
            self._written += missing

    def turn(self, server: Server, *, seconds: int, connections: int, delay_ms: float = 0) -> Sample:
        """Buy for so long, then wait until MySQL has it all, so that the next turn has the machine for itself."""
        before = supply.units_left(self.sale)
        load = wrk.load(
            url_of(server, PURCHASES),
            seconds=seconds,
            connections=connections,
            script=wrk.PURCHASES,
            variables=wrk.tickets(self.path, delay_ms=delay_ms),
        )
        accepted = before - supply.units_left(self.sale)
        drained = wait_until_empty(partial(supply.queue_length, self.sale))
        # What was answered 2xx and took no unit was a repeat: the tickets ran out.
        wrong = load.not_2xx + max(0, load.requests - load.not_2xx - accepted)
        return sample_of(load, rate=accepted / load.seconds, wrong=wrong, drain_seconds=drained, accepted=accepted)


def sample_of(load: wrk.Load, *, rate: float, wrong: int, **details: float) -> Sample:
    """Make a turn of wrk one of a figure."""
    return Sample(
        value=rate,
        count=load.requests,
        p50_ms=load.p50_ms,
        p99_ms=load.p99_ms,
        not_2xx=load.not_2xx,
        wrong=wrong,
        lost=load.lost,
        details=details,
    )


def accepted(house: House) -> Findings:
    """Part a: purchases accepted, ticket checked, everything running, beside Django's way and a bare answer."""
    size = house.size
    servers = {LANE: house.shop.web, DJANGO: house.without_lane()}
    bare = house.bare()
    with house.screen.step("Part a: warming up, and signing tickets for as long as it takes"):
        counters = {name: Counter(house, name=f"a-{number}") for number, name in enumerate(servers)}
        for name, counter in counters.items():
            counter.provide(FIRST_TICKETS * size.warm_up_seconds)
            rate = counter.turn(servers[name], seconds=size.warm_up_seconds, connections=size.connections).value
            # The lane's turns at half the rate come on top.
            rounds = size.rounds * 1.5 if name == LANE else size.rounds
            counter.provide(int(max(rate, RATE_MIN) * rounds * size.seconds * (1 + size.tickets_spare)) + SPARE_TICKETS)
    turns: dict[str, Callable[[], Sample]] = {
        name: partial(counter.turn, servers[name], seconds=size.seconds, connections=size.connections)
        for name, counter in counters.items()
    }
    turns[BARE] = partial(bare_turn, house, bare)
    found = by_turns(turns, rounds=size.rounds, before_round=partial(told, house, "a"))
    lane = _accepted(
        LANE, found[LANE], note=f"{size.connections} connections; ticket checked, AOF on, worker and beat on"
    )
    half = _accepted(HALF, _at_half(house, counters[LANE], rate=lane.value), note="each connection waits between calls")
    return Findings(
        figures=[
            lane,
            half,
            _accepted(DJANGO, found[DJANGO], note="the same through Django's handler"),
            Figure(part="a", name=BARE, kind=Kind.ANSWERED, samples=found[BARE], note="what HTTP alone costs here"),
        ],
        goals=[
            Goal(part="a", name="p99 at half the rate, ms", value=half.p99_ms or 0.0, most=P99_MS_MAX),
            Goal(part="a", name="the lane ÷ Django's handler", value=ratio(found[LANE], found[DJANGO]), least=1),
        ],
    )


def _accepted(name: str, samples: list[Sample], *, note: str) -> Figure:
    return Figure(part="a", name=name, kind=Kind.ACCEPTED, samples=samples, note=note)


def _at_half(house: House, counter: Counter, *, rate: float) -> list[Sample]:
    size = house.size
    delay_ms = max(1, round(1_000 * size.connections / (rate / 2)))
    half = partial(counter.turn, house.shop.web, seconds=size.seconds, connections=size.connections, delay_ms=delay_ms)
    return by_turns({HALF: half}, rounds=size.rounds, before_round=partial(told, house, "a, at half the rate"))[HALF]


def bare_turn(house: House, server: Server) -> Sample:
    """Ask for what costs nothing to answer."""
    size = house.size
    load = wrk.load(url_of(server, HELLO), seconds=size.seconds, connections=size.connections)
    return sample_of(load, rate=load.per_second, wrong=load.not_2xx)


def sold_out(house: House) -> Findings:
    """Part b: answers of a sale that is sold out, to first calls and to such that may be repeats."""
    size = house.size
    with house.screen.step("Part b: selling one unit, and signing tickets"):
        sale = supply.open_sale(name="b", units=1)
        first, *rest = supply.buyer_ids(1 + size.tickets_again)
        supply.reserve_for(sale=sale, buyers=[first])
        path = supply.write_tickets(sale=sale, buyers=rest, path=house.directory / "b.tickets")
        require_answer(house.shop.web, ticket=path.read_text().split("\n", 1)[0], status=409, code="sold_out")
    names = {"first calls, answered from memory": 1, "repeats, each asked of Redis": 2}
    turns = {name: partial(_sold_out_turn, house, path=path, attempt=attempt) for name, attempt in names.items()}
    found = by_turns(turns, rounds=size.rounds, before_round=partial(told, house, "b"))
    return Findings(
        figures=[
            Figure(part="b", name=name, kind=Kind.SOLD_OUT, samples=samples, note="each answer is 409 sold_out")
            for name, samples in found.items()
        ]
    )


def _sold_out_turn(house: House, *, path: Path, attempt: int) -> Sample:
    load = wrk.load(
        url_of(house.shop.web, PURCHASES),
        seconds=house.size.seconds,
        connections=house.size.connections,
        script=wrk.PURCHASES,
        variables=wrk.tickets(path, attempt=attempt),
    )
    return sample_of(load, rate=load.not_2xx / load.seconds, wrong=load.requests - load.not_2xx)


def polled(house: House) -> Findings:
    """Part c: polls, while the purchase waits for MySQL and once its order is there. No worker runs."""
    size = house.size
    with house.screen.step("Part c: buying, and signing tickets"):
        confirmed, sale = _polls(house, name="c-confirmed")
        wait_until_empty(partial(supply.queue_length, sale))
    with without_workers(house):
        with house.screen.step("Part c: buying what nobody settles meanwhile"):
            queued, sale = _polls(house, name="c-queued")
        turns = {
            "while it waits for MySQL": partial(_poll_turn, house, path=queued),
            "once the order is there": partial(_poll_turn, house, path=confirmed),
        }
        found = by_turns(turns, rounds=size.rounds, before_round=partial(told, house, "c"))
    with house.screen.step("Part c: settling that"):
        wait_until_empty(partial(supply.queue_length, sale))
    notes = ("the receipt in Redis", "the receipt, and the order in MySQL")
    return Findings(
        figures=[
            Figure(part="c", name=name, kind=Kind.POLLED, samples=samples, note=note)
            for (name, samples), note in zip(found.items(), notes, strict=True)
        ]
    )


def _polls(house: House, *, name: str) -> tuple[Path, OpenedSale]:
    """Let buyers buy through the shop's own function and write what they poll with."""
    from seckill.purchase import purchase

    count = house.size.polled
    sale = supply.open_sale(name=name, units=count)
    path = house.directory / f"{name}.polls"
    with path.open("w") as file:
        for order_no, ticket in supply.signed_tickets(sale=sale, buyers=supply.buyer_ids(count)):
            purchase(ticket=ticket, quantity=1)
            file.write(f"{order_no} {ticket}\n")
    return path, sale


def _poll_turn(house: House, *, path: Path) -> Sample:
    load = wrk.load(
        url_of(house.shop.web, PURCHASES),
        seconds=house.size.seconds,
        connections=house.size.connections,
        script=wrk.POLLS,
        variables=wrk.tickets(path),
    )
    return sample_of(load, rate=(load.requests - load.not_2xx) / load.seconds, wrong=load.not_2xx)


def volley(house: House) -> Findings:
    """Part l: a thousand connections on one unit, at once."""
    size = house.size
    shots: list[Sample] = []
    for number in range(size.rounds):
        told(house, "l", number + 1)
        sale = supply.open_sale(name=f"l-{number}", units=1)
        tickets = supply.signed_tickets(sale=sale, buyers=supply.buyer_ids(size.volley))
        bodies = [json.dumps({"ticket": ticket, "quantity": 1, "attempt": 1}).encode() for _, ticket in tickets]
        shots.append(_shot(house, sale=sale, bodies=bodies))
    wrong, lost = (sum(getattr(shot, name) for shot in shots) for name in ("wrong", "lost"))
    figure = Figure(
        part="l",
        name=f"{size.volley:,} connections on one unit",
        kind=Kind.MILLISECONDS,
        samples=shots,
        note="the slowest answer; wrong: 5xx, or not one accepted and all others sold out",
    )
    return Findings(
        figures=[figure],
        goals=[
            Goal(part="l", name="errors and lost answers", value=wrong + lost, most=0),
            Goal(part="l", name="p99 of the volley, ms", value=figure.p99_ms or 0.0, most=VOLLEY_P99_MS_MAX),
        ],
    )


def _shot(house: House, *, sale: OpenedSale, bodies: list[bytes]) -> Sample:
    seen = fire(port=house.shop.web.port, bodies=bodies)
    accepted, refused, lost = (seen.statuses[status] for status in (202, 409, LOST))
    sold = 1 - supply.units_left(sale)
    others = len(bodies) - accepted - refused - lost
    return Sample(
        value=seen.latencies_ms[-1],
        count=len(bodies),
        p50_ms=percentile(seen.latencies_ms, 0.50),
        p99_ms=percentile(seen.latencies_ms, 0.99),
        not_2xx=len(bodies) - accepted - lost,
        wrong=others + abs(accepted - 1) + abs(sold - 1),
        lost=lost,
        details={"accepted": accepted, "sold_out": refused},
    )


def require_answer(server: Server, *, ticket: str, status: int, code: str) -> None:
    """Ask once, and raise ServersError unless the answer is the one that is to be measured."""
    connection = HTTPConnection(HOST, server.port, timeout=10)
    body = json.dumps({"ticket": ticket, "quantity": 1})
    connection.request("POST", PURCHASES, body=body, headers={"Content-Type": "application/json"})
    answer = connection.getresponse()
    said = json.loads(answer.read())
    connection.close()
    if answer.status != status or said.get("code") != code:
        raise ServersError(f"expected {status} {code}, and was answered {answer.status} {said}")


def told(house: House, part: str, number: int) -> None:
    """Show which round begins."""
    leave_if_told()
    house.screen.line(f"Part {part}: round {number} of {house.size.rounds}")
