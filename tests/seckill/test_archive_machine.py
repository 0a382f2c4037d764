"""The machine of random operations and faults, with an archive somewhere in the middle of it.

Whatever happened before, between its steps and afterwards: in the end the sale is archived, what was sold
is sold, and every other unit is in the warehouse.
"""

import os

import pytest
from django.utils import timezone
from hypothesis import Phase
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from inventory.models import Stock
from seckill.archive import advance, finish_sale
from seckill.archive_begin import Accepted, begin
from seckill.archive_tables import ArchiveRun
from seckill.errors import ArchiveWaits, GateUnavailable
from seckill.gate.connection import raw_client
from seckill.models import FlashSale, Incident, ItemBucket, Reservation
from seckill.rebuild import rebuild_bucket
from seckill.sweep import examine
from tests.support.archive import end
from tests.support.machine import UNITS, run, unavailable_is_fine
from tests.support.machine_money import MoneyMachine

ROUNDS_MAX = 40
STEPS_MAX = 10


class ArchiveMachine(MoneyMachine):
    """A shop whose sale ends and is archived while everything goes on."""

    has_begun = False

    @initialize()
    def start(self) -> None:
        """Nothing has begun."""
        self.has_begun = False

    @precondition(lambda self: not self.has_begun)
    @rule()
    def end_and_begin(self) -> None:
        """The sale ends, and its archive begins unless the bucket is to be rebuilt first."""
        end(self.shop)
        try:
            begin(sale_id=self.shop.sale.pk, accepted=Accepted(), now=timezone.now())
        except (ArchiveWaits, GateUnavailable):
            return
        self.has_begun = True

    @precondition(lambda self: self.has_begun)
    @rule(steps=st.integers(1, STEPS_MAX))
    def archive(self, steps: int) -> None:
        """A tick comes, with time for a few steps."""
        left = iter(range(steps))
        advance(run=self._run(), clock=timezone.now, has_time=lambda: next(left, None) is not None)

    @rule()
    def sweep(self) -> None:
        """The sweep looks only at what is on sale."""
        if not self.has_begun and examine(bucket=self.shop.bucket):
            rebuild_bucket(bucket=self.shop.bucket, clock=timezone.now)

    @precondition(lambda self: not self.has_begun)
    @rule()
    def rebuild_for_nothing(self) -> None:
        """Somebody rebuilds a sound bucket."""
        rebuild_bucket(bucket=self.shop.bucket, clock=timezone.now)

    @precondition(lambda self: self.saved is not None and raw_client().exists(*self.shop.bucket.keys))
    @rule()
    def restart_and_forget(self) -> None:
        """Redis restarts with what the file had; never with a bucket that is archived already."""
        super().restart_and_forget()

    def teardown(self) -> None:
        """Go on until the archive is done."""
        for n in range(ROUNDS_MAX):
            if not self.has_begun:
                self.sweep()
                self.end_and_begin()
            else:
                self.archive(STEPS_MAX)
            self.adjust(death="")
            with unavailable_is_fine():
                self.give_back(dies=False)
            self.come_to_rest()
            if self.has_begun and self._run().stage == "DONE" and n:
                break
        finish_sale(sale_id=self.shop.sale.pk)
        self._assert_archived()

    def _assert_archived(self) -> None:
        unit, stock = ItemBucket.objects.get(item_id=self.shop.item.pk), Stock.objects.get(sku=self.shop.item.sku)
        run = self._run()
        assert (run.stage, FlashSale.objects.get(pk=self.shop.sale.pk).state) == ("DONE", "ARCHIVED"), run.waits_for
        assert raw_client().exists(*self.shop.bucket.keys) == 0
        units = UNITS + self.units_adjusted(counterpart="OUTSIDE")
        assert (unit.allocated, stock.on_hand) == (unit.sold, units - unit.sold)
        reservations = Reservation.objects.filter(pool_id=self.shop.pool.pk)
        assert not reservations.filter(owed_at__isnull=False).exists()
        alive = self.orders().filter(closed_at__isnull=True)
        assert set(reservations.filter(state="SETTLED").values_list("order_no", flat=True)) == set(
            alive.values_list("number", flat=True)
        )
        if not self.was_rolled_back:
            assert set(self.accepted) <= set(reservations.values_list("order_no", flat=True))
        if not self.was_rolled_back and not self.was_tampered_with:
            assert not Incident.objects.filter(kind="archive_differs", pool_id=self.shop.pool.pk).exists()

    def _run(self) -> ArchiveRun:
        return ArchiveRun.objects.get(pool=self.shop.pool)


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_a_machine_with_an_archive() -> None:
    """Some runs each time; ``SOAK_EXAMPLES`` makes them more, see ``make soak``."""
    run(ArchiveMachine, examples=int(os.environ.get("SOAK_EXAMPLES", "50")), phases=(Phase.generate, Phase.shrink))
