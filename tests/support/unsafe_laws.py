"""What each law forbids, swapped in for a control: every function here takes one protection away."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from seckill import outcomes, reconciliation, settlement
from seckill.decisions import Decision
from seckill.errors import GateUnavailable
from seckill.gate import connection, gate
from seckill.gate import members as gate_members
from seckill.gate.codes import ReserveCode
from seckill.gate.connection import Script, raw_client
from seckill.gate.gate import ReserveReply, Restock
from seckill.gate.keys import BucketRef
from seckill.gate.members import MembersSeen
from seckill.states import ReservationState


def count_without_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare as the seed articles do: stock in MySQL with the balance in Redis (law 7)."""
    nothing = reconciliation._Queued(in_flight={}, owed={})
    monkeypatch.setattr(reconciliation, "_queued_units", lambda **_: nothing)


def look_without_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare buyers and receipts with the rows alone."""
    look = gate_members.look

    def look_past_it(**arguments: Any) -> MembersSeen:
        return replace(look(**arguments), entries=(), queue_length=0)

    monkeypatch.setattr(gate_members, "look", look_past_it)


def release_without_tombstone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give refused units back and write nothing down (law 3).

    The second guard goes with it: a Redis that was told of a number without a row would be frozen.
    """
    write = outcomes.write_reservations

    def write_settled(*, decisions: Sequence[Decision], **others: Any) -> None:
        write(decisions=[d for d in decisions if d.state is ReservationState.SETTLED], **others)

    monkeypatch.setattr(outcomes, "write_reservations", write_settled)
    monkeypatch.setattr(settlement, "require_all_commits", lambda **_: None)


def restock_whatever_the_receipt_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bring units back by INCRBY (law 4)."""

    def add(*, bucket: BucketRef, restocks: Sequence[Restock], **_others: Any) -> list[str]:
        for due in restocks:
            raw_client().hincrby(bucket.keys[0], f"{due.item_id}:left", due.units_back)
        return [due.order_no for due in restocks]

    monkeypatch.setattr(gate, "restock", add)


def roll_back_after_a_lost_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take "no answer" for "not done" and give the unit back (law 5)."""
    reserve = gate.reserve

    def reserve_or_roll_back(**arguments: Any) -> ReserveReply:
        try:
            return reserve(**arguments)
        except GateUnavailable:
            stock, _, buyers, _, _ = arguments["bucket"].keys
            raw_client().hincrby(stock, f"{arguments['item_id']}:left", arguments["quantity"])
            raw_client().hdel(buyers, arguments["limit_key"])
            raise

    monkeypatch.setattr(gate, "reserve", reserve_or_roll_back)


def remember_what_is_sold_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answer from the process's own memory before the script looks for a receipt (law 6)."""
    reserve, sold_out = gate.reserve, set()

    def reserve_unless_sold_out(**arguments: Any) -> ReserveReply:
        if arguments["item_id"] not in sold_out:
            reply = reserve(**arguments)
            if reply.code is not ReserveCode.SOLD_OUT:
                return reply
            sold_out.add(arguments["item_id"])
        return ReserveReply(code=ReserveCode.SOLD_OUT, number=0, is_wake_up_wanted=False)

    monkeypatch.setattr(gate, "reserve", reserve_unless_sold_out)


def trust_any_run_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sell on a Redis that was restarted and nobody has checked (law 8)."""
    read_text = type(connection.LUA).read_text

    def without_the_fence(path: Any, *args: Any, **kwargs: Any) -> str:
        text = read_text(path, *args, **kwargs)
        return text.replace("raw[2] ~= run_id or ", "") if path.name == "prelude.lua" else text

    with monkeypatch.context() as patch:
        patch.setattr(type(connection.LUA), "read_text", without_the_fence)
        unfenced = Script("reserve")
    assert "raw[2] ~= run_id" not in unfenced.text
    monkeypatch.setattr(gate, "_reserve", unfenced)
