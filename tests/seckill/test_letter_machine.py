"""The machine of random operations and faults with busy operators, on sale and into the archive."""

import os

import pytest
from django.utils import timezone
from hypothesis import Phase
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from seckill.archive_begin import Accepted, begin
from seckill.errors import ArchiveWaits, GateUnavailable, RebuildRefused, SaleNotReady
from tests.seckill.test_archive_machine import ArchiveMachine
from tests.support.archive import end
from tests.support.machine import run
from tests.support.machine_letters import LetterMachine

EXAMPLES = int(os.environ.get("SOAK_EXAMPLES", "20"))


class LetterArchiveMachine(LetterMachine, ArchiveMachine):
    """A shop with busy operators, of whom one has it archived and gives dead letters up."""

    @precondition(lambda self: not self.has_begun)
    @rule(gives_up=st.booleans())
    def end_and_begin(self, *, gives_up: bool = False) -> None:
        """The sale ends, and its archive begins unless something comes first."""
        end(self.shop)
        try:
            begin(sale_id=self.shop.sale.pk, accepted=Accepted(dead_letters=gives_up), now=timezone.now())
        except (ArchiveWaits, GateUnavailable, SaleNotReady):
            return
        self.has_begun = True

    @rule()
    def sweep(self) -> None:
        """The sweep looks only at what is on sale."""
        try:
            ArchiveMachine.sweep(self)
        except RebuildRefused:
            return


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize("machine", [LetterMachine, LetterArchiveMachine])
def test_a_machine_with_busy_operators(machine: type[LetterMachine]) -> None:
    """Some runs each time; ``SOAK_EXAMPLES`` makes them more."""
    run(machine, examples=EXAMPLES, phases=(Phase.generate, Phase.shrink))
