"""The scenarios of two buckets, each looked through in every interleaving."""

from collections.abc import Mapping

from tests.model.pair import PairScenario
from tests.model.rules import Purchase, World
from tests.model.scenarios import RAISED, SCENARIOS, Scenario
from tests.model.state import Faults

ONE = (Purchase(limit_key=0),)


def bucket(*, units: int, buyers: int = 1, **more: object) -> Scenario:
    """One of two buckets, with some units and buyers."""
    purchases = tuple(Purchase(limit_key=key) for key in range(buyers))
    names = {name: more.pop(name) for name in ("warehouse", "deltas", "tampers", "rebuilds_max") if name in more}
    world = World(purchases=purchases, units=units, is_spread=True, **names)  # type: ignore[arg-type]
    return Scenario(says="a bucket of two", world=world, **more)  # type: ignore[arg-type]


PAIRS: Mapping[str, PairScenario] = {
    "transfer": PairScenario(
        says="a unit moves to a buyer while it is sold where it was; two transfer, and one may die",
        halves=(bucket(units=1), bucket(units=0)),
        transferrings=2,
        faults=Faults(deaths=1),
    ),
    "transfer back": PairScenario(
        says="the last unit moves to and fro",
        halves=(bucket(units=1), bucket(units=0)),
        transfers_max=2,
        donors=(0, 1),
        faults=Faults(deaths=1),
    ),
    "transfer of two": PairScenario(
        says="two units are asked for where one is sold meanwhile",
        halves=(bucket(units=2, buyers=2), bucket(units=0)),
        units=2,
    ),
    "donor rebuilt": PairScenario(
        says="the donor is rebuilt at any step of a transfer, and somebody dies",
        halves=(bucket(units=1, rebuilds=1, rebuilds_max=2), bucket(units=0)),
        transferrings=2,
        faults=Faults(rebuilds_by_hand=1),
    ),
    "receiver rebuilt": PairScenario(
        says="the receiver is rebuilt at any step of a transfer, and somebody dies",
        halves=(bucket(units=1), bucket(units=0, rebuilds=1, rebuilds_max=2)),
        transferrings=2,
        faults=Faults(rebuilds_by_hand=1, deaths=1),
    ),
    "donor rebuilt slowly": PairScenario(
        says="a rebuild of the donor still believes in its claim while units are taken and moved",
        halves=(bucket(units=1, rebuilds=1, rebuilds_max=2), bucket(units=0)),
        transferrings=2,
        faults=Faults(rebuilds_by_hand=1, slow_rebuilds=1),
    ),
    "both rebuilt": PairScenario(
        says="donor and receiver are rebuilt, each at any step of a transfer",
        halves=(
            bucket(units=1, rebuilds=1, rebuilds_max=1),
            bucket(units=0, rebuilds=1, rebuilds_max=1),
        ),
        faults=Faults(rebuilds_by_hand=2),
    ),
    "returns": PairScenario(
        says="an order of the donor is closed and comes back while the unit beside it moves",
        halves=(bucket(units=2, returns=1, faults=Faults(closings=1)), bucket(units=0)),
        faults=Faults(closings=1, deaths=1),
    ),
    "returns at the receiver": PairScenario(
        says="what was brought is bought, closed and comes back, and moves again",
        halves=(bucket(units=1), bucket(units=0, returns=1, faults=Faults(closings=1))),
        transfers_max=2,
        donors=(0, 1),
        faults=Faults(closings=1),
    ),
    "donor restarted": PairScenario(
        says="the donor's Redis restarts and has forgotten what was taken",
        halves=(bucket(units=1, rebuilds=1, faults=Faults(restarts=1)), bucket(units=0)),
        faults=Faults(restarts=1, deaths=1),
    ),
    "receiver restarted": PairScenario(
        says="the receiver's Redis restarts and has forgotten what was given",
        halves=(bucket(units=1), bucket(units=0, rebuilds=1, faults=Faults(restarts=1))),
        faults=Faults(restarts=1, deaths=1),
    ),
    "compared": PairScenario(
        says="both buckets are compared at every moment of a transfer: no false alarm",
        halves=(bucket(units=1, reconciliations=1), bucket(units=0, reconciliations=1)),
        faults=Faults(reconciles=2, deaths=1),
    ),
    "hands": PairScenario(
        says="a hand raises what the donor has left: what MySQL does not have is not moved",
        halves=(
            bucket(units=1, buyers=2, reconciliations=1, tampers=("a hand raises left",), promises=RAISED),
            bucket(units=0),
        ),
        faults=Faults(tampers=1),
    ),
    "changes by hand": PairScenario(
        says="one unit more for the receiver by hand while a transfer is on its way",
        halves=(bucket(units=1), bucket(units=0, adjustings=1, deltas=(1,), warehouse=1)),
        faults=Faults(deaths=1),
    ),
    "sold out": PairScenario(
        says="somebody looks through both buckets for the last unit while it moves",
        halves=(bucket(units=1), bucket(units=0)),
        transfers_max=2,
        donors=(0, 1),
        has_asking=True,
    ),
}

# All worlds, of one bucket and of two.
WORLDS: Mapping[str, Scenario | PairScenario] = {**SCENARIOS, **PAIRS}
