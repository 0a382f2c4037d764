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
    "units_that_leave_lower_allocated": Mutant("closings", "law 10"),
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
    "adjust_checks_the_epoch": Mutant("changes and rebuild", "law 7"),
    "adjust_is_done_once": Mutant("changes and restart", "it does not come to rest"),
    "adjust_takes_all_or_nothing": Mutant("changes and restart", "law 7: -1 left"),
    "up_goes_to_mysql_first": Mutant("up and down", "law 7"),
    "down_goes_to_redis_first": Mutant("changes and restart", "law 7"),
    "down_checks_the_epoch": Mutant("changes and rebuild", "law 7"),
    "a_refusal_uses_its_number": Mutant("down and up", "law 7"),
    "allocated_covers_sold": Mutant("down and hands", "law 1"),
    "a_change_is_finished_once": Mutant("changes and rebuild", "law 10"),
    "compare_counts_half_a_change": Mutant("down and up", "false alarm"),
    "reserve_stops_at_the_end": Mutant("archive and two payers", "archive: Redis is removed"),
    "repair_stops_at_the_seal": Mutant("archive and hands", "archive: Redis has changed"),
    "a_repeat_is_looked_up": Mutant("archive and two payers", "law 6"),
    "compare_skips_a_sealed_bucket": Mutant("archive and rebuild", "false alarm"),
    "archive_waits_for_a_rebuild": Mutant("archive and rebuild", "archive: Redis has changed"),
    "archive_voids_an_old_claim": Mutant("archive and rebuild", "archive: Redis has changed"),
    "seal_waits_for_debts": Mutant("archive and two payers", "at rest"),
    "drain_waits_for_the_queue": Mutant("archive and two payers", "archive: Redis is removed"),
    "copy_is_compared": Mutant("archive and hands", "archive: the copy"),
    "archive_step_is_taken_once": Mutant("archive killed", "law 10"),
    "redis_is_kept_until_compared": Mutant("archive and two payers", "law 6"),
    "leftovers_go_to_the_warehouse": Mutant("archive and two payers", "law 10"),
    "lost_debts_are_written_off": Mutant("archive and loss", "at rest"),
    "archive_waits_for_changes": Mutant("changes and archive", "law 7"),
    "rebuild_needs_a_sale_that_is_on": Mutant("archive and rebuild", "archive: Redis has changed"),
    "drain_keeps_what_survived": Mutant("slow rebuild with returns", "law 6"),
    "swap_requires_the_claim": Mutant("slow rebuild with returns", "law 7"),
    "take_comes_before_the_move": Mutant("transfer", "law 7"),
    "give_comes_after_the_move": Mutant("transfer", "law 7"),
    "move_checks_the_epoch": Mutant("donor rebuilt", "law 7"),
    "a_transfer_moves_once": Mutant("transfer", "law 7"),
    "a_take_of_nothing_uses_its_number": Mutant("transfer back", "at rest"),
    "numbers_are_for_one_at_a_time": Mutant("changes by hand", "law 7"),
    "compare_counts_half_a_transfer": Mutant("compared", "false alarm"),
    "sold_out_looks_at_all_buckets": Mutant("sold out", "law 6"),
    "sold_out_looks_at_transfers": Mutant("sold out", "law 6"),
    "sold_out_looks_at_them_again": Mutant("sold out", "law 6"),
    "sold_out_asks_the_gate_last": Mutant("sold out", "law 6"),
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
    Group(("restock_stops_at_the_seal", "restock_only_confirmed"), "archive and two payers", "law 7"),
    Group(("adjust_skips_what_is_over", "adjust_waits_for_its_turn"), "nothing is over", "law 7"),
    Group(("adjust_waits_for_its_turn", "adjust_skips_what_is_over"), "nothing is over", "law 7"),
    Group(
        (
            "adjust_stops_at_the_seal",
            "adjust_is_done_once",
            "adjust_skips_what_is_over",
            "adjust_waits_for_its_turn",
        ),
        "changes and archive",
        "law 7",
    ),
    Group(("adjust_stops_when_frozen", "down_checks_the_epoch"), "changes and rebuild", "law 7"),
    Group(("take_takes_what_is_there", "adjust_takes_all_or_nothing"), "transfer", "law 7: -1 left"),
    Group(("sold_is_guarded", "decide_checks_the_room"), "no look at the room", "law 1"),
    Group(("a_leak_needs_an_old_run", "compare_counts_debts"), "debts miscounted", "law 7"),
    Group(("a_leak_is_raised_by_the_least", "compare_counts_debts"), "debts miscounted", "law 7"),
    Group(("proof_ends_with_a_repair", "compare_counts_debts"), "debts miscounted", "law 7"),
    Group(("compare_skips_a_bucket_in_rebuild", "repair_checks_epoch_and_freeze"), "leak and rebuild", "law 7"),
    Group(("drain_requires_the_claim", "swap_requires_the_claim"), "slow rebuild with returns", "law 7"),
    Group(("staging_renews_the_claim", "swap_requires_the_claim"), "slow rebuild with returns", "law 7"),
    Group(("swap_requires_its_epoch", "swap_requires_the_claim"), "slow rebuild with returns", "law 7"),
)
