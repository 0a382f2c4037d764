"""The rules of the protocol, each with the code that keeps it, and the world in which they are tried.

A step asks ``model.rule(name, condition)``: does the rule apply here? A mutant answers no where it would have
been yes. What is counted is how often a rule applied, not how often it was asked.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

LUA = "seckill/gate/lua/"


@dataclass(frozen=True, kw_only=True)
class Purchase:
    """One order number: whose limit it counts by, and how many units are asked for."""

    limit_key: int
    quantity: int = 1


@dataclass(frozen=True, kw_only=True)
class World:
    """What does not change: the order numbers, the units on sale and in the warehouse, limit and batch size."""

    purchases: tuple[Purchase, ...]
    units: int
    limit: int = 1
    batch_size: int = 2
    warehouse: int = 0
    # What a hand may do in Redis, which keys may vanish, and where the units of closed orders may go.
    tampers: tuple[str, ...] = ()
    deletable: tuple[str, ...] = ()
    units_to: tuple[str, ...] = ("ON_SALE",)
    has_sold_out_memory: bool = False
    # Manual changes of the units on sale, in their order; and whether the sale ends and is archived.
    deltas: tuple[int, ...] = ()
    is_ended: bool = False
    # 0 is as many as are wanted.
    rebuilds_max: int = 0
    # The item has another bucket: what one does not have may be in the other.
    is_spread: bool = False

    @property
    def limit_keys(self) -> int:
        """How many limit keys there are; they are numbered from 0."""
        return max(purchase.limit_key for purchase in self.purchases) + 1


@dataclass(frozen=True, kw_only=True)
class Model:
    """A world, the rules that are switched off in it, and how often each rule applied."""

    world: World
    without: frozenset[str] = frozenset()
    applied: Counter[str] = field(default_factory=Counter)

    def rule(self, name: str, condition: object) -> bool:
        """Tell whether a rule applies: its condition holds and no mutant has switched it off."""
        if not condition or name in self.without:
            return False
        self.applied[name] += 1
        return True

    def always(self, name: str) -> bool:
        """Tell whether a rule without a condition applies: no mutant has switched it off."""
        return self.rule(name, name)


# Each rule with the places in the code where it stands: a script, or the dotted path of a function.
RULES: Mapping[str, tuple[str, ...]] = {
    # The gate's scripts.
    "scripts_check_the_run_id": (LUA + "prelude.lua", LUA + "reserve.lua"),
    "scripts_miss_missing_keys": (LUA + "prelude.lua",),
    "reserve_replays_first": (LUA + "reserve.lua",),
    "reserve_stops_when_frozen": (LUA + "reserve.lua",),
    "reserve_checks_the_limit": (LUA + "reserve.lua",),
    "reserve_checks_the_stock": (LUA + "reserve.lua",),
    "confirm_checks_the_epoch": (LUA + "confirm.lua", LUA + "release.lua"),
    "confirm_counts_what_it_removed": (LUA + "confirm.lua", LUA + "release.lua"),
    "release_gives_back_what_is_owed": (LUA + "release.lua",),
    "release_frees_the_buyer": (LUA + "release.lua",),
    "restock_checks_the_epoch": (LUA + "restock.lua",),
    "restock_waits_for_confirm": (LUA + "restock.lua",),
    "restock_only_confirmed": (LUA + "restock.lua",),
    "restock_frees_the_buyer": (LUA + "restock.lua",),
    "repair_checks_epoch_and_freeze": (LUA + "repair.lua",),
    "repair_checks_the_number": (LUA + "repair.lua",),
    "repair_never_goes_below_zero": (LUA + "repair.lua",),
    "swap_checks_the_run_id": (LUA + "swap.lua",),
    "swap_checks_the_token": (LUA + "swap.lua",),
    "swap_checks_the_epoch": (LUA + "swap.lua",),
    "swap_checks_the_last_id": (LUA + "swap.lua",),
    # A buyer.
    "a_repeat_reaches_the_gate": ("seckill.purchase.purchase",),
    # Settlement.
    "settle_reads_under_the_lock": ("seckill.settlement._write_once", "seckill.settlement._read_queue"),
    "settle_checks_the_gate_epoch": ("seckill.settlement._read_queue",),
    "settle_checks_entry_epochs": ("seckill.settlement._read_queue", "seckill.settlement._close"),
    "known_number_keeps_its_fate": ("seckill.decisions.decide", "seckill.outcomes.known_fates"),
    "numbers_are_used_once": ("seckill.outcomes._require_unused_numbers", "seckill.intake.SEQUENCE_KEY"),
    "decide_checks_the_limit": ("seckill.decisions._decide_new", "seckill.outcomes.units_held"),
    "decide_counts_the_batch": ("seckill.decisions._decide_new",),
    "decide_checks_the_room": ("seckill.decisions._decide_new", "seckill.outcomes.units_unsold"),
    "sold_is_guarded": ("seckill.outcomes._count_sold",),
    "limit_refusal_owes_its_units": ("seckill.decisions._decide_new", "seckill.intake.owes_its_units"),
    "phantom_owes_nothing": ("seckill.decisions._decide_new",),
    # Closings and returns.
    "an_order_closes_once": ("orders.services.move_order", "orders.services.expire_orders"),
    "return_needs_a_settled_row": ("seckill.returns.take_back",),
    "return_waits_for_a_rebuild": ("seckill.returns.take_back",),
    "return_voids_an_old_claim": ("seckill.returns.take_back",),
    "units_that_leave_lower_allocated": ("seckill.returns._count_back",),
    "debt_is_crossed_off_when_done": ("seckill.returns.pay_debts",),
    # Reconciliation and repair.
    "compare_holds_the_lock": ("seckill.reconciliation._compare",),
    "compare_lists_debts_first": ("seckill.reconciliation._compare", "seckill.returns.debts_of"),
    "compare_counts_the_queue": ("seckill.reconciliation._queued_units",),
    "compare_knows_what_is_settled": ("seckill.reconciliation._queued_units",),
    "compare_counts_refusals_owed": ("seckill.reconciliation._queued_units",),
    "compare_counts_debts": ("seckill.reconciliation._owed_units",),
    "compare_skips_paid_debts": ("seckill.reconciliation._owed_units",),
    "compare_skips_a_bucket_in_rebuild": ("seckill.reconciliation._compare",),
    "excess_is_lowered_at_once": ("seckill.repair.proved_deltas",),
    "a_leak_is_raised_with_proof": ("seckill.repair.proved_deltas", "seckill.repair._least_leaks"),
    "a_leak_needs_an_old_run": ("seckill.repair._least_leaks",),
    "a_leak_is_raised_by_the_least": ("seckill.repair._least_leaks",),
    "proof_ends_with_a_repair": ("seckill.repair._least_leaks",),
    # Manual changes.
    "adjust_checks_the_epoch": (LUA + "adjust.lua",),
    "adjust_stops_when_frozen": (LUA + "adjust.lua",),
    "adjust_is_done_once": (LUA + "adjust.lua",),
    "adjust_skips_what_is_over": (LUA + "adjust.lua",),
    "adjust_waits_for_its_turn": (LUA + "adjust.lua",),
    "adjust_stops_at_the_seal": (LUA + "adjust.lua",),
    "adjust_takes_all_or_nothing": (LUA + "adjust.lua",),
    "up_goes_to_mysql_first": ("seckill.adjusting._take_number", "seckill.adjusting._raise_allocated"),
    "down_goes_to_redis_first": ("seckill.adjusting._take_number", "seckill.adjusting._end_decrease"),
    "down_checks_the_epoch": ("seckill.adjusting._end",),
    "a_refusal_uses_its_number": ("seckill.adjusting._end_decrease",),
    "allocated_covers_sold": ("seckill.adjusting._change_allocated",),
    "a_change_is_finished_once": ("seckill.adjusting._end",),
    "compare_counts_half_a_change": ("seckill.adjusting.units_under_way",),
    # Transfers between buckets.
    "take_takes_what_is_there": (LUA + "adjust.lua", "seckill.gate.changing.take"),
    "take_comes_before_the_move": ("seckill.transfers._take", "seckill.transfers._move"),
    "give_comes_after_the_move": ("seckill.transfers._move", "seckill.transfers._give"),
    "move_checks_the_epoch": ("seckill.transfers._move",),
    "a_transfer_moves_once": ("seckill.transfers._move",),
    "a_take_of_nothing_uses_its_number": ("seckill.transfers._move",),
    "numbers_are_for_one_at_a_time": ("seckill.numbering.is_free", "seckill.transfers._open"),
    "compare_counts_half_a_transfer": ("seckill.transfers.units_in_transit",),
    "sold_out_looks_at_all_buckets": ("seckill.elsewhere.units_of_item",),
    "sold_out_looks_at_transfers": ("seckill.elsewhere.units_of_item",),
    "sold_out_looks_at_them_again": ("seckill.elsewhere.units_of_item",),
    "sold_out_asks_the_gate_last": ("seckill.purchase._in_all_buckets",),
    # Archive.
    "reserve_stops_at_the_end": (LUA + "reserve.lua",),
    "restock_stops_at_the_seal": (LUA + "restock.lua",),
    "repair_stops_at_the_seal": (LUA + "repair.lua",),
    "a_repeat_is_looked_up": ("seckill.purchase._is_known",),
    "compare_skips_a_sealed_bucket": ("seckill.reconciliation._compare",),
    "archive_waits_for_a_rebuild": ("seckill.archive_begin._void_claim",),
    "archive_waits_for_changes": ("seckill.archive_begin._require_no_change_under_way",),
    "archive_voids_an_old_claim": ("seckill.archive_begin._void_claim",),
    "seal_waits_for_debts": ("seckill.archive_steps.seal_bucket",),
    "drain_waits_for_the_queue": ("seckill.archive_steps.drain_bucket", LUA + "close.lua"),
    "copy_is_compared": ("seckill.archive_buyers._conclude",),
    "archive_step_is_taken_once": ("seckill.archive_run.require_held",),
    "redis_is_kept_until_compared": ("seckill.archive_steps.STEPS",),
    "leftovers_go_to_the_warehouse": ("seckill.archive_steps.clear_leftovers",),
    "lost_debts_are_written_off": ("seckill.returns.write_off_debts",),
    # Rebuild.
    "rebuild_needs_a_sale_that_is_on": ("seckill.rebuild.rebuild_bucket", "seckill.outcomes.is_on_sale"),
    "a_live_claim_bars_others": ("seckill.rebuild.claim",),
    "rebuild_freezes": ("seckill.rebuild.rebuild_claimed", "seckill.gate.staging.freeze"),
    "drain_keeps_what_survived": ("seckill.rebuild.drain_survivors", "seckill.gate.staging.surviving_entries"),
    "drain_renumbers": ("seckill.rebuild._renumbered", "seckill.rebuild._first_seq"),
    "drain_raises_the_epoch": ("seckill.rebuild.drain_survivors",),
    "drain_requires_the_claim": ("seckill.rebuild.drain_survivors", "seckill.rebuild.require_claim"),
    "staging_renews_the_claim": ("seckill.rebuild._fill_staging", "seckill.rebuild._renew"),
    "swap_requires_the_claim": ("seckill.rebuild._swap", "seckill.rebuild.require_claim"),
    "swap_requires_its_epoch": ("seckill.rebuild._swap",),
}
