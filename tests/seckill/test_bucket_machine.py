"""Random operations and faults over two buckets on the real stores, and a planted fault that the machine must find."""

import os

import pytest
from hypothesis import Phase

from seckill import reconciliation
from tests.support.machine import only
from tests.support.machine_buckets import BucketsMachine, run

EXAMPLES = 40
EXAMPLES_OF_CONTROLS = 200


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_a_machine_of_buckets_and_transfers() -> None:
    """``SOAK_EXAMPLES`` makes the runs more, see ``make soak``."""
    examples = int(os.environ.get("SOAK_EXAMPLES", EXAMPLES))
    run(BucketsMachine, examples=examples, phases=(Phase.generate, Phase.shrink))


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_control_reconciliation_that_knows_of_no_transfers_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's control, with the rules alone that meet the fault: what is on its way looks like drift then."""
    monkeypatch.setattr(reconciliation, "units_in_transit", lambda **_: {})
    with pytest.raises(AssertionError):
        run(only(BucketsMachine, "buy", "bring"), examples=EXAMPLES_OF_CONTROLS, phases=(Phase.generate,))
