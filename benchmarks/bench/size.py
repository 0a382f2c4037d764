"""How large a run is: the sizes of its rounds, and what they are cut down to for a test."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Size:
    """Sizes of one run. Rounds go by turns; a figure is the median of its rounds."""

    rounds: int = 3
    # Of each turn under load, and of the turn before the first that is not counted.
    seconds: int = 5
    warm_up_seconds: int = 1
    connections: int = 64
    # Connections and purchases of the volley: all at once, for one unit.
    volley: int = 1_000
    # Different tickets sent to a sale that is sold out, and different purchases polled: none more often than a throttle
    # lets, which is twenty times a second in each process.
    tickets_again: int = 20_000
    polled: int = 5_000
    orders_in_batches: int = 20_000
    orders_one_by_one: int = 1_000
    drained: int = 100_000
    bought_meanwhile_per_second: int = 500
    # Buyers that sales have behind them, from few to many, and buyers that are archived.
    crowds: tuple[int, ...] = (10_000, 100_000, 1_000_000)
    archived: int = 1_000_000
    # Tickets kept ready beyond what the warm-up's pace asks for, as a part of that.
    tickets_spare: float = 0.4


NORMAL = Size()
SMALL = Size(
    rounds=1,
    seconds=1,
    connections=8,
    volley=50,
    tickets_again=1_000,
    polled=1_000,
    orders_in_batches=300,
    orders_one_by_one=20,
    drained=1_000,
    bought_meanwhile_per_second=50,
    crowds=(100, 500, 2_000),
    archived=2_000,
)
