"""Mutants: each rule of the protocol switched off, in the smallest scenario that notices.

A rule that another one covers is not missed alone; then both are switched off, where each alone is not missed.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Mutant(NamedTuple):
    """Where a rule is missed, and the law that says so."""

    scenario: str
    law: str


class Group(NamedTuple):
    """Rules that cover each other, or of which the others cover the first; where they are missed together."""

    rules: tuple[str, ...]
    scenario: str
    law: str


SINGLE: Mapping[str, Mutant] = {
    "scripts_check_the_run_id": Mutant("restart with returns", "law 8"),
    "scripts_miss_missing_keys": Mutant("deleted keys", "law 8"),
    "reserve_replays_first": Mutant("rush", "law 6"),
    "reserve_stops_when_frozen": Mutant("slow rebuild with returns", "law 8"),
    "reserve_checks_the_limit": Mutant("quantities", "law 6"),
    "reserve_checks_the_stock": Mutant("closings", "law 7: -1 left"),
    "confirm_counts_what_it_removed": Mutant("rush", "at rest"),
    "release_gives_back_what_is_owed": Mutant("limit", "law 7"),
    "release_frees_the_buyer": Mutant("phantom", "at rest"),
    "restock_waits_for_confirm": Mutant("restart with returns", "law 7"),
    "restock_only_confirmed": Mutant("closings", "law 7"),
    "restock_frees_the_buyer": Mutant("restart with returns", "at rest"),
    "repair_checks_epoch_and_freeze": Mutant("leak and rebuild", "law 7"),
    "repair_checks_the_number": Mutant("leak", "law 7"),
    "repair_never_goes_below_zero": Mutant("excess", "law 7"),
    "a_repeat_reaches_the_gate": Mutant("rush", "law 6"),
    "settle_reads_under_the_lock": Mutant("restart with returns", "law 7"),
    "known_number_keeps_its_fate": Mutant("slow rebuild with returns", "law 3"),
    "decide_checks_the_limit": Mutant("limit", "law 2"),
    "decide_counts_the_batch": Mutant("limit", "law 2"),
    "decide_checks_the_room": Mutant("excess", "it does not come to rest"),
    "limit_refusal_owes_its_units": Mutant("limit", "law 7"),
    "phantom_owes_nothing": Mutant("phantom", "law 7"),
    "an_order_closes_once": Mutant("closings", "law 3"),
    "return_needs_a_settled_row": Mutant("restart with returns", "law 1"),
    "return_waits_for_a_rebuild": Mutant("restart with returns", "law 7"),
    "return_voids_an_old_claim": Mutant("slow rebuild with returns", "law 7"),
    "units_that_leave_lower_allocated": Mutant("closings", "law 7"),
    "debt_is_crossed_off_when_done": Mutant("restart with returns", "law 7"),
    "compare_holds_the_lock": Mutant("reconcile", "false alarm"),
    "compare_lists_debts_first": Mutant("reconcile", "false alarm"),
    "compare_counts_the_queue": Mutant("reconcile", "false alarm"),
    "compare_knows_what_is_settled": Mutant("reconcile", "false alarm"),
    "compare_counts_refusals_owed": Mutant("limit", "false alarm"),
    "compare_counts_debts": Mutant("reconcile", "false alarm"),
    "compare_skips_paid_debts": Mutant("reconcile", "false alarm"),
    "excess_is_lowered_at_once": Mutant("excess", "it does not come to rest"),
    "a_leak_is_raised_with_proof": Mutant("leak", "it does not come to rest"),
    "rebuild_freezes": Mutant("deleted keys", "at rest: the gate stays shut"),
    "drain_raises_the_epoch": Mutant("deleted keys", "at rest: the gate stays shut"),
    "settle_checks_the_gate_epoch": Mutant("rebuilds race", "at rest: the gate stays shut"),
    "a_live_claim_bars_others": Mutant("rebuilds race", "at rest: the gate stays shut"),
    "drain_keeps_what_survived": Mutant("slow rebuild with returns", "law 6"),
    "swap_requires_the_claim": Mutant("slow rebuild with returns", "law 7"),
}

# The first rule of each is not missed alone in that scenario.
GROUPS: tuple[Group, ...] = (
    Group(("confirm_checks_the_epoch", "confirm_counts_what_it_removed"), "deleted keys", "at rest"),
    Group(("restock_checks_the_epoch", "restock_only_confirmed"), "restart with returns", "law 7"),
    Group(("swap_checks_the_token", "swap_checks_the_last_id"), "slow rebuild", "law 6"),
    Group(("swap_checks_the_last_id", "swap_checks_the_token"), "slow rebuild", "law 6"),
    Group(("swap_checks_the_last_id", "swap_checks_the_token", "rebuild_freezes"), "no freeze", "law 6"),
    Group(("swap_checks_the_epoch", "swap_checks_the_token", "swap_checks_the_last_id"), "slow rebuild", "law 6"),
    Group(("swap_checks_the_run_id", "scripts_check_the_run_id"), "restart", "law 8"),
    Group(("numbers_are_used_once", "scripts_check_the_run_id"), "no run id fence", "law 3"),
    Group(("drain_renumbers", "scripts_check_the_run_id"), "no run id fence", "it does not come to rest"),
    Group(
        (
            "settle_checks_entry_epochs",
            "settle_checks_the_gate_epoch",
            "numbers_are_used_once",
            "scripts_check_the_run_id",
        ),
        "no run id fence, older epoch",
        "law 3",
    ),
    Group(("sold_is_guarded", "decide_checks_the_room"), "no look at the room", "law 1"),
    Group(("a_leak_needs_an_old_run", "compare_counts_debts"), "debts miscounted", "law 7"),
    Group(("a_leak_is_raised_by_the_least", "compare_counts_debts"), "debts miscounted", "law 7"),
    Group(("proof_ends_with_a_repair", "compare_counts_debts"), "debts miscounted", "law 7"),
    Group(("compare_skips_a_bucket_in_rebuild", "repair_checks_epoch_and_freeze"), "leak and rebuild", "law 7"),
    Group(("drain_requires_the_claim", "swap_requires_the_claim"), "slow rebuild with returns", "law 7"),
    Group(("staging_renews_the_claim", "swap_requires_the_claim"), "slow rebuild with returns", "law 7"),
    Group(("swap_requires_its_epoch", "swap_requires_the_claim"), "slow rebuild with returns", "law 7"),
)
