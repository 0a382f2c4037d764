"""The protocol, in every interleaving of small worlds: the laws hold, and no rule can be spared."""

from collections import Counter
from dataclasses import replace

import pytest
from django.db import connection

from tests.model.explore import Exploration
from tests.model.mutants import GROUPS, SINGLE, Group
from tests.model.pair_scenarios import WORLDS
from tests.model.rules import RULES

# Together they take well under a second.
QUICK = (
    "deleted keys",
    "phantom",
    "leak and rebuild",
    "limit",
    "rush",
    "no look at the room",
    "transfer",
    "donor restarted",
    "sold out",
)


@pytest.mark.parametrize("name", QUICK)
def test_the_laws_hold_in_a_small_world(name: str) -> None:
    _, flaw, _ = WORLDS[name].explore()
    assert flaw is None, str(flaw)


@pytest.mark.slow
def test_the_laws_hold_and_every_rule_applies() -> None:
    connection.close()  # The server ends a session that says nothing for a minute, which this takes on a busy machine.
    applied: Counter[str] = Counter()
    for name, scenario in WORLDS.items():
        _, flaw, model = scenario.explore()
        assert flaw is None, f"{name}: {flaw}"
        applied += model.applied
    assert set(applied) == set(RULES)


@pytest.mark.slow
@pytest.mark.parametrize("rule", SINGLE)
def test_a_rule_is_missed(rule: str) -> None:
    mutant = SINGLE[rule]
    assert not WORLDS[mutant.scenario].without
    _, flaw, _ = WORLDS[mutant.scenario].explore(without=frozenset({rule}))
    assert flaw is not None
    assert flaw.law.startswith(mutant.law), str(flaw)


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.rules[0])
def test_a_covered_rule_is_missed_with_what_covers_it(group: Group) -> None:
    scenario = WORLDS[group.scenario]
    assert scenario.without <= set(group.rules)
    _, flaw, _ = scenario.explore(without=frozenset(group.rules))
    assert flaw is not None
    assert flaw.law.startswith(group.law), str(flaw)


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.rules[0])
def test_a_covered_rule_is_not_missed_alone(group: Group) -> None:
    scenario = replace(WORLDS[group.scenario], without=frozenset({group.rules[0]}))
    _, flaw, _ = scenario.explore()
    assert flaw is None, str(flaw)


def test_every_rule_has_a_mutant() -> None:
    covered = {group.rules[0] for group in GROUPS}
    assert not covered & set(SINGLE)
    assert covered | set(SINGLE) == set(RULES)


def test_a_flaw_is_told_by_a_shortest_way() -> None:
    _, flaw, _ = WORLDS["phantom"].explore(without=frozenset({"decide_checks_the_room", "sold_is_guarded"}))
    assert flaw is not None
    assert flaw.law == "law 1: 2 sold of 1"
    assert sorted(flaw.steps[:3]) == ["a hand raises left", "reserve 0: accepted", "reserve 1: accepted"]
    assert flaw.steps[3:] == ("read_queue [0]", "take_in [0]")
    assert str(flaw).startswith("law 1: 2 sold of 1\n  1 ")


def test_what_never_ends_is_a_flaw() -> None:
    scenario = WORLDS["leak"]
    exploration, flaw, _ = scenario.explore(states_max=100)
    assert isinstance(exploration, Exploration)
    assert flaw is not None
    assert flaw.law == "there are more than 100 states"
