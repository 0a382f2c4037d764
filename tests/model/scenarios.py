"""The scenarios: small worlds, each looked through in every interleaving."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tests.model.explore import STATES_MAX, Exploration, Flaw
from tests.model.laws import Laws, Promises
from tests.model.rules import Model, Purchase, World
from tests.model.state import (
    FREE,
    LEASE_OVER,
    NO_ORDER,
    NO_RECEIPT,
    NOTHING,
    ON_SALE,
    PREHEATED,
    WAREHOUSE,
    Faults,
    MySql,
    Redis,
    State,
)
from tests.model.steps.adjusting import Adjusting
from tests.model.steps.archive import Archive, Close
from tests.model.steps.buyers import Buyers
from tests.model.steps.closing import Closing
from tests.model.steps.faults import World as Surroundings
from tests.model.steps.process import Process
from tests.model.steps.rebuild import Clock, Rebuild
from tests.model.steps.reconciliation import Reconciliation
from tests.model.steps.returns import Returns
from tests.model.steps.settlement import Settlement


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A world, how many of each process there are, what may go wrong, and the rules that are missing from the start."""

    says: str
    world: World
    settlements: int = 1
    returns: int = 0
    reconciliations: int = 0
    rebuilds: int = 0
    adjustings: int = 0
    archives: int = 0
    faults: Faults = field(default_factory=Faults)
    without: frozenset[str] = frozenset()
    promises: Promises = field(default_factory=Promises)
    is_rest_asked: bool = True

    def explore(
        self, *, without: frozenset[str] = frozenset(), states_max: int = STATES_MAX
    ) -> tuple[Exploration[State], Flaw | None, Model]:
        """Look through all of it, with further rules switched off; return what was seen, and the first flaw."""
        model = self.model(without=without)
        units = self.world.units + self.world.warehouse
        laws = Laws(model=Model(world=self.world), promises=self.promises, units=units)
        exploration = Exploration(processes=self.processes(model=model), laws=laws, is_rest_asked=self.is_rest_asked)
        return exploration, exploration.run(begin(self), states_max=states_max), model

    def model(self, *, without: frozenset[str] = frozenset()) -> Model:
        """Make the model of this world, with further rules switched off."""
        return Model(world=self.world, without=self.without | without)

    def processes(self, *, model: Model) -> tuple[Process, ...]:
        """Make the processes; those with a local state come first, each in the slot of its place."""
        kinds: list[type[Process]] = [Settlement] * self.settlements + [Returns] * self.returns
        kinds += [Reconciliation] * self.reconciliations + [Rebuild] * self.rebuilds
        kinds += [Adjusting] * self.adjustings + [Archive] * self.archives
        working = [kind(model=model, slot=slot) for slot, kind in enumerate(kinds)]
        claiming = tuple(process.slot for process in working if isinstance(process, (Rebuild, Archive)))
        others: list[Process] = [Buyers(model=model, slot=FREE), Surroundings(model=model, slot=FREE)]
        if self.faults.closings:
            others.append(Closing(model=model, slot=FREE))
        if claiming:
            others.append(Clock(model=model, slot=FREE, slots=claiming))
        if self.world.is_ended:
            others.append(Close(model=model, slot=FREE))
        return (*working, *others)

    @property
    def slots(self) -> int:
        """How many processes have a local state."""
        return self.settlements + self.returns + self.reconciliations + self.rebuilds + self.adjustings + self.archives


def begin(scenario: Scenario) -> State:
    """Return the state after preheat: everything is there, nobody has come."""
    world = scenario.world
    count = len(world.purchases)
    redis = Redis(
        server=1,
        run_id=1,
        epoch=1,
        frozen=0,
        seq=0,
        adj_no=0,
        adj_applied=0,
        repair_no=0,
        left=world.units,
        queued=0,
        buyers=(0,) * world.limit_keys,
        receipts=(NO_RECEIPT,) * count,
        queue=(),
        last_id=0,
        missing=(),
        is_over=False,
        is_sealed=False,
    )
    mysql = MySql(
        rows=(None,) * count,
        orders=(NO_ORDER,) * count,
        units_to=(ON_SALE,) * count,
        allocated=world.units,
        sold=0,
        warehouse=world.warehouse,
        epoch=1,
        claim=0,
        lease=LEASE_OVER,
        tokens=0,
        adj_no=0,
        repair_no=0,
        run=None,
        sale=PREHEATED,
        change=None,
        changed=(),
        archive=None,
    )
    return State(
        redis=redis,
        mysql=mysql,
        lock=FREE,
        locals=((),) * scenario.slots,
        told=(NOTHING,) * count,
        saved=redis if scenario.faults.restarts else None,
        faults=scenario.faults,
        has_forgotten=False,
        remembers_sold_out=False,
    )


ONE_KEY_TWICE = (Purchase(limit_key=0), Purchase(limit_key=0), Purchase(limit_key=1))
TWO_BUYERS = (Purchase(limit_key=0), Purchase(limit_key=1))

# A hand that changes units or marks: what Redis then accepts may be refused, and numbers differ until repaired.
RAISED = Promises(accepts_are_orders=False, raises_no_alarm=False, is_balanced=False, never_exceeds=False)
LOWERED = Promises(raises_no_alarm=False, is_balanced=False)
UNMARKED = Promises(accepts_are_orders=False, marks_are_true=False)

SCENARIOS: Mapping[str, Scenario] = {
    "rush": Scenario(
        says="three tickets, two of one buyer, one unit; two workers that may die; replies may be lost",
        world=World(purchases=ONE_KEY_TWICE, units=1, has_sold_out_memory=True),
        settlements=2,
        faults=Faults(deaths=1, lost_replies=1, repeats=1),
    ),
    "quantities": Scenario(
        says="purchases of two units within a limit of three",
        world=World(
            purchases=(Purchase(limit_key=0, quantity=2), Purchase(limit_key=0, quantity=2), Purchase(limit_key=1)),
            units=4,
            limit=3,
        ),
        returns=1,
        reconciliations=1,
        faults=Faults(closings=1, reconciles=1),
    ),
    "closings": Scenario(
        says="orders are cancelled or expire, on sale again or to the warehouse; two jobs pay debts and may die",
        world=World(purchases=TWO_BUYERS, units=1, units_to=(ON_SALE, WAREHOUSE)),
        returns=2,
        faults=Faults(closings=2, deaths=1),
    ),
    "reconcile": Scenario(
        says="reconciliation at every moment of settlement and returns, with a lost row lock: no false alarm",
        world=World(purchases=TWO_BUYERS, units=2),
        returns=1,
        reconciliations=1,
        faults=Faults(closings=1, reconciles=1, lost_locks=1),
    ),
    "restart": Scenario(
        says="Redis restarts and has forgotten its last writes",
        world=World(purchases=TWO_BUYERS, units=1, rebuilds_max=6),
        rebuilds=1,
        faults=Faults(restarts=1, deaths=1, rebuilds_by_hand=1),
    ),
    "restart with returns": Scenario(
        says="Redis forgets while orders close and come back",
        world=World(purchases=TWO_BUYERS, units=1, rebuilds_max=4),
        rebuilds=1,
        returns=1,
        faults=Faults(restarts=1, closings=1),
    ),
    "two rebuilds": Scenario(
        says="two rebuilds at once: one was not needed, each may die or lose its lock",
        world=World(purchases=TWO_BUYERS, units=2),
        rebuilds=2,
        faults=Faults(rebuilds_by_hand=2, lost_locks=1, deaths=1),
    ),
    "rebuilds race": Scenario(
        says="two rebuilds at once and nothing else: the second does not keep the first from its end",
        world=World(purchases=TWO_BUYERS[:1], units=1, rebuilds_max=3),
        rebuilds=2,
        faults=Faults(rebuilds_by_hand=1),
    ),
    "slow rebuild": Scenario(
        says="two rebuilds, one of which is slow and still believes in its claim",
        world=World(purchases=TWO_BUYERS, units=2),
        rebuilds=2,
        faults=Faults(rebuilds_by_hand=1, slow_rebuilds=1, lost_locks=1),
    ),
    "slow rebuild with returns": Scenario(
        says="a return comes while a rebuild still believes in its claim",
        world=World(purchases=TWO_BUYERS, units=2),
        rebuilds=1,
        returns=1,
        faults=Faults(rebuilds_by_hand=1, slow_rebuilds=1, closings=1),
    ),
    "deleted keys": Scenario(
        says="keys vanish",
        world=World(
            purchases=TWO_BUYERS,
            units=1,
            deletable=("gate", "stock", "buyers", "receipts", "queue", "all"),
            rebuilds_max=2,
        ),
        rebuilds=1,
        faults=Faults(deletions=1),
    ),
    "gate deleted with two rebuilds": Scenario(
        says="the gate vanishes, so that nothing can be frozen, and one of two rebuilds is slow",
        world=World(purchases=TWO_BUYERS, units=1, deletable=("gate", "all")),
        rebuilds=2,
        faults=Faults(deletions=1, slow_rebuilds=1, lost_locks=1),
    ),
    "phantom": Scenario(
        says="a hand raises what is left, and nobody repairs: MySQL refuses what is not there",
        world=World(purchases=TWO_BUYERS, units=1, tampers=("a hand raises left",)),
        faults=Faults(tampers=1),
        promises=replace(RAISED, hands_raise=1),
    ),
    "excess": Scenario(
        says="a hand raises what is left: two reconciliations lower it while it is sold",
        world=World(purchases=TWO_BUYERS, units=1, tampers=("a hand raises left",)),
        reconciliations=2,
        faults=Faults(tampers=1, reconciles=1),
        promises=RAISED,
    ),
    "leak": Scenario(
        says="a hand lowers what is left, twice: two reconciliations raise it, with proof, once",
        world=World(purchases=TWO_BUYERS[:1], units=2, tampers=("a hand lowers left",)),
        reconciliations=2,
        faults=Faults(tampers=2, reconciles=1),
        promises=LOWERED,
    ),
    "leak and rebuild": Scenario(
        says="a hand lowers what is left, and a rebuild comes between finding and repairing",
        world=World(purchases=TWO_BUYERS[:1], units=1, tampers=("a hand lowers left",)),
        reconciliations=1,
        rebuilds=1,
        faults=Faults(tampers=1, reconciles=1, rebuilds_by_hand=1),
        promises=LOWERED,
    ),
    "limit": Scenario(
        says="a hand deletes the buyers' marks: MySQL alone keeps the limit",
        world=World(purchases=ONE_KEY_TWICE, units=3, tampers=("a hand deletes the buyers' marks",)),
        reconciliations=1,
        faults=Faults(tampers=1, reconciles=1),
        promises=UNMARKED,
    ),
    "up and down": Scenario(
        says="one unit more, then one less, while it is sold; two apply the changes, and one may die",
        world=World(purchases=TWO_BUYERS, units=1, warehouse=1, deltas=(1, -1)),
        adjustings=2,
        faults=Faults(deaths=1),
    ),
    "down and up": Scenario(
        says="one unit less, then one more, with reconciliation and a death between the halves",
        world=World(purchases=TWO_BUYERS[:1], units=1, warehouse=1, deltas=(-1, 1)),
        adjustings=1,
        reconciliations=1,
        faults=Faults(deaths=1, reconciles=2),
    ),
    "changes and rebuild": Scenario(
        says="one unit less and one more while the bucket is rebuilt",
        world=World(purchases=TWO_BUYERS[:1], units=1, warehouse=1, deltas=(-1, 1)),
        adjustings=2,
        rebuilds=1,
        faults=Faults(rebuilds_by_hand=1),
    ),
    "changes and restart": Scenario(
        says="one unit less and one more while Redis restarts and has forgotten",
        world=World(purchases=TWO_BUYERS[:1], units=1, warehouse=1, deltas=(-1, 1)),
        adjustings=1,
        rebuilds=1,
        faults=Faults(restarts=1, deaths=1),
    ),
    "down and hands": Scenario(
        says="a hand raises what is left, so that Redis gives up a unit that MySQL has sold",
        world=World(purchases=TWO_BUYERS[:1], units=1, deltas=(-1,), tampers=("a hand raises left",)),
        adjustings=1,
        reconciliations=1,
        faults=Faults(tampers=1),
        promises=RAISED,
    ),
    "changes and archive": Scenario(
        says="the sale ends while changes are made: its archive waits for one that is half made",
        world=World(purchases=TWO_BUYERS[:1], units=1, warehouse=1, deltas=(1, -1), is_ended=True),
        adjustings=2,
        archives=1,
    ),
    "nothing is over": Scenario(
        says="a late call finds its number used by others: that it is not the next one holds it up alone",
        world=World(purchases=TWO_BUYERS[:1], units=1, warehouse=1, deltas=(1, -1)),
        adjustings=2,
        without=frozenset({"adjust_skips_what_is_over"}),
    ),
    "archive": Scenario(
        says="the sale ends and is archived by two workers while orders close and come back",
        world=World(purchases=TWO_BUYERS, units=2, is_ended=True),
        returns=1,
        archives=2,
        faults=Faults(closings=1, repeats=1),
    ),
    "archive killed": Scenario(
        says="a worker of the archive dies at any step, and another goes on",
        world=World(purchases=TWO_BUYERS, units=2, is_ended=True),
        archives=2,
        faults=Faults(deaths=1),
    ),
    "archive and rebuild": Scenario(
        says="the sale ends while a rebuild is slow and a reconciliation is under way",
        world=World(purchases=TWO_BUYERS[:1], units=1, is_ended=True),
        archives=1,
        rebuilds=1,
        reconciliations=1,
        faults=Faults(rebuilds_by_hand=1, slow_rebuilds=1, reconciles=1),
    ),
    "archive and loss": Scenario(
        says="Redis is lost while the sale is archived and an order comes back",
        world=World(purchases=TWO_BUYERS[:1], units=1, is_ended=True),
        returns=1,
        rebuilds=1,
        archives=1,
        faults=Faults(restarts=1, closings=1),
    ),
    "archive and two payers": Scenario(
        says="a debt is paid by somebody else, and the bucket sealed, before one who has listed it comes",
        world=World(purchases=TWO_BUYERS[:1], units=1, is_ended=True),
        returns=2,
        archives=1,
        faults=Faults(closings=1, repeats=1),
    ),
    "archive and hands": Scenario(
        says="a hand deletes the buyers' marks while they are copied, or raises what is left",
        world=World(
            purchases=TWO_BUYERS,
            units=2,
            is_ended=True,
            tampers=("a hand deletes the buyers' marks", "a hand raises left"),
        ),
        archives=1,
        reconciliations=1,
        faults=Faults(tampers=1, reconciles=1),
        promises=replace(RAISED, marks_are_true=False),
    ),
    "no run id fence": Scenario(
        says="Redis restarts, forgets, and sells on: the guards in MySQL hold alone",
        world=World(purchases=ONE_KEY_TWICE, units=2, rebuilds_max=5),
        rebuilds=1,
        faults=Faults(restarts=1),
        without=frozenset({"scripts_check_the_run_id"}),
        promises=replace(RAISED, is_fenced=False),
    ),
    "no run id fence, older epoch": Scenario(
        says="Redis restarts, and sells on in an epoch that is over",
        world=World(purchases=TWO_BUYERS, units=1, rebuilds_max=5),
        rebuilds=1,
        faults=Faults(restarts=1, rebuilds_by_hand=1),
        without=frozenset({"scripts_check_the_run_id"}),
        promises=replace(RAISED, is_fenced=False),
    ),
    "no token": Scenario(
        says="swap does not look at the token: the epoch of the gate says that another rebuild was quicker",
        world=World(purchases=TWO_BUYERS[:1], units=1),
        rebuilds=2,
        faults=Faults(rebuilds_by_hand=1, lost_locks=1, slow_rebuilds=1),
        without=frozenset({"swap_checks_the_token"}),
    ),
    "no freeze": Scenario(
        says="a rebuild that does not freeze: the last id of the queue says that somebody has bought",
        world=World(purchases=TWO_BUYERS, units=2),
        rebuilds=1,
        faults=Faults(rebuilds_by_hand=1),
        without=frozenset({"rebuild_freezes", "swap_checks_the_token"}),
    ),
    "no claim at the swap": Scenario(
        says="the swap's transaction does not look at the claim: the epoch of the row says who came later",
        world=World(purchases=TWO_BUYERS, units=2),
        rebuilds=2,
        faults=Faults(rebuilds_by_hand=1, slow_rebuilds=1),
        without=frozenset({"swap_requires_the_claim", "staging_renews_the_claim"}),
    ),
    "no look at the gate's epoch": Scenario(
        says="settlement does not look at the epoch of the gate: that of each entry is looked at",
        world=World(purchases=TWO_BUYERS, units=2, rebuilds_max=2),
        rebuilds=1,
        faults=Faults(rebuilds_by_hand=1),
        without=frozenset({"settle_checks_the_gate_epoch"}),
        is_rest_asked=False,
    ),
    "no look at the room": Scenario(
        says="settlement does not look how much room there is: the guarded update refuses to oversell",
        world=World(purchases=TWO_BUYERS, units=1, tampers=("a hand raises left",)),
        faults=Faults(tampers=1),
        without=frozenset({"decide_checks_the_room"}),
        promises=RAISED,
        is_rest_asked=False,
    ),
    "debts miscounted": Scenario(
        says="reconciliation does not count debts: the proof alone keeps a repair from selling them twice",
        world=World(purchases=TWO_BUYERS[:1], units=2, tampers=("a hand lowers left",)),
        returns=1,
        reconciliations=1,
        faults=Faults(closings=1, reconciles=2, tampers=1),
        without=frozenset({"compare_counts_debts"}),
        promises=LOWERED,
    ),
}
