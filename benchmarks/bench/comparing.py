"""Part d: the seed articles' ways to sell a unit beside the shop's, each with checked tickets. Needs Django set up."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.bench import supply, ways, wrk
from benchmarks.bench.figures import Figure, Findings, Goal, Kind, Sample, by_turns, ratio
from benchmarks.bench.house import House, url_of
from benchmarks.bench.purchases import Counter, sample_of, told
from benchmarks.servers.process import Server

SHOP = "the shop"
NAMES = {
    ways.FOR_UPDATE: "SELECT … FOR UPDATE",
    ways.GUARDED: "guarded UPDATE",
    ways.SKIP_LOCKED: "a row for each unit, SKIP LOCKED",
    ways.WATCH: "WATCH, MULTI, EXEC",
    ways.LUA: "one Lua script",
}
TIMES_FOR_UPDATE_MIN, TIMES_WATCH_MIN = 6, 4
# What a turn's second may use up: rows of units for the ways of MySQL, and tickets.
UNITS_PER_SECOND_MAX = 6_000
TICKETS_PER_SECOND_MAX = 15_000


def compared(house: House) -> Findings:
    """Measure each way by turns with the shop itself."""
    size = house.size
    articles = house.articles()
    turn_seconds = size.rounds * size.seconds + size.warm_up_seconds
    with house.screen.step("Part d: making tables, units and tickets"):
        ways.set_up(units=turn_seconds * UNITS_PER_SECOND_MAX)
        shop = Counter(house, name="d")
        shop.provide(turn_seconds * TICKETS_PER_SECOND_MAX)
        paths = {way: _tickets(house, way=way, counter=shop) for way in ways.WAYS}
    turns: dict[str, Callable[[], Sample]] = {
        NAMES[way]: partial(_turn, house, articles, way=way, path=paths[way]) for way in ways.WAYS
    }
    turns[SHOP] = partial(shop.turn, house.shop.web, seconds=size.seconds, connections=size.connections)
    with house.screen.step("Part d: warming up"):
        for way in ways.WAYS:
            _turn(house, articles, way=way, path=paths[way], seconds=size.warm_up_seconds)
    found = by_turns(turns, rounds=size.rounds, before_round=partial(told, house, "d"))
    written = {NAMES[way] for way in ways.SQL_WAYS}
    figures = [
        Figure(
            part="d",
            name=name,
            kind=Kind.WRITTEN if name in written else Kind.ACCEPTED,
            samples=samples,
            note="the order is in MySQL when the buyer is answered" if name in written else "the order follows",
        )
        for name, samples in found.items()
    ]
    for_update, watch = (ratio(found[SHOP], found[NAMES[way]]) for way in (ways.FOR_UPDATE, ways.WATCH))
    return Findings(
        figures=figures,
        goals=[
            Goal(part="d", name="the shop ÷ SELECT … FOR UPDATE", value=for_update, least=TIMES_FOR_UPDATE_MIN),
            Goal(part="d", name="the shop ÷ WATCH, MULTI, EXEC", value=watch, least=TIMES_WATCH_MIN),
        ],
    )


def _tickets(house: House, *, way: str, counter: Counter) -> Path:
    """Give a way the same tickets as the shop's, with a count of its own of those that are used."""
    path = house.directory / f"d-{way}.tickets"
    path.unlink(missing_ok=True)
    supply.next_of(path).unlink(missing_ok=True)
    path.hardlink_to(counter.path)
    return path


def _turn(house: House, server: Server, *, way: str, path: Path, seconds: int = 0) -> Sample:
    before = ways.orders(way)
    load = wrk.load(
        url_of(server, f"/{way}/"),
        seconds=seconds or house.size.seconds,
        connections=house.size.connections,
        script=wrk.PURCHASES,
        variables=wrk.tickets(path),
    )
    sold = ways.orders(way) - before
    return sample_of(load, rate=sold / load.seconds, wrong=load.not_2xx, sold=sold)
