"""The model and the code use the same names; whoever renames one of them comes here."""

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from seckill.archive_tables import ArchiveRun as CodeArchiveRun
from seckill.gate.staging import GateFields as CodeGateFields
from seckill.models import Bucket, ItemBucket, Reservation
from seckill.transfer_tables import Transfer as CodeTransfer
from tests.model import scripts
from tests.model.pair import Transfer
from tests.model.rules import LUA, RULES
from tests.model.scenarios import SCENARIOS
from tests.model.state import ArchiveRun, MySql, Redis, Row
from tests.model.steps.asking import Asking
from tests.model.steps.process import Process
from tests.model.steps.transferring import Transferring

ROOT = Path(__file__).parents[2]


def processes() -> set[type[Process]]:
    return {type(process) for scenario in SCENARIOS.values() for process in scenario.processes(model=scenario.model())}


def places() -> Iterator[str]:
    for of_rule in RULES.values():
        yield from of_rule
    for process in processes():
        yield from process.STEPS.values()
    yield from (*Transferring.STEPS.values(), *Asking.STEPS.values())


def exists(place: str) -> bool:
    """Tell whether a file, or the module, class, function or constant of a dotted path, is there."""
    if "/" in place:
        return (ROOT / place).is_file()
    path, attributes = place, list[str]()
    while True:
        try:
            found: object = import_module(path)
            break
        except ModuleNotFoundError:
            path, _, last = path.rpartition(".")
            attributes.insert(0, last)
            if not path:
                return False
    for attribute in attributes:
        if not hasattr(found, attribute):
            return False
        found = getattr(found, attribute)
    return True


@pytest.mark.parametrize("place", sorted(set(places())))
def test_each_step_and_rule_stands_in_the_code(place: str) -> None:
    assert exists(place), f"{place} is gone: is the model still the protocol? See docs/model.md."


def test_a_name_that_is_not_there_is_noticed() -> None:
    assert not exists("seckill.settlement._no_such_step")
    assert not exists("no_such_app.module")
    assert not exists(LUA + "no_such_script.lua")


def test_each_script_of_the_model_is_a_file() -> None:
    modelled = {name for name in dir(scripts) if (ROOT / LUA / f"{name}.lua").is_file()}
    assert modelled >= {"reserve", "confirm", "release", "restock", "repair", "adjust", "seal", "freeze", "swap"}


def test_the_gate_has_the_fields_of_the_model() -> None:
    gate = {"epoch", "run_id", "frozen", "seq", "adj_no", "adj_applied", "repair_no"}
    assert gate < set(Redis._fields)
    prelude = (ROOT / LUA / "prelude.lua").read_text()
    assert gate <= set(re.findall(r"\w+", prelude))
    assert gate - {"frozen", "run_id"} <= CodeGateFields.__annotations__.keys()


def test_the_tables_have_the_columns_of_the_model() -> None:
    columns = {model: {field.name for field in model._meta.get_fields()} for model in (Bucket, ItemBucket, Reservation)}
    assert {"epoch", "claim", "adj_no", "repair_no"} <= columns[Bucket] & set(MySql._fields)
    assert {"allocated", "sold"} <= columns[ItemBucket] & set(MySql._fields)
    assert {"state", "epoch", "seq", "reason", "units_owed"} <= columns[Reservation] & set(Row._fields)


def test_the_archive_has_the_columns_of_the_model() -> None:
    columns = {field.name for field in CodeArchiveRun._meta.get_fields()}
    assert {"stage", "epoch", "is_redis_lost"} == columns & set(ArchiveRun._fields)


def test_a_transfer_has_the_columns_of_the_model() -> None:
    columns = {field.name for field in CodeTransfer._meta.get_fields()}
    assert {"donor_adj_no", "receiver_adj_no", "donor_epoch"} == columns & set(Transfer._fields)
