"""The guide for clients says what to do about every code, with the status it has."""

import re
from pathlib import Path

from config.errors import ANSWERS
from config.problems import FOREIGN
from seckill.polling import PurchaseState
from seckill.states import RefusalReason

GUIDE = Path(__file__).resolve().parent.parent.parent / "docs" / "api-guide.md"
ROW = re.compile(r"^\| `([a-z_]+)` \| (\d{3}) \|", re.MULTILINE)


def test_every_code_is_in_the_guide() -> None:
    """A new error wants a line there: what happened, and what a client does."""
    known = {(answer.code, int(answer.status)) for answer in (*ANSWERS.values(), *FOREIGN.values())}
    told = {(code, int(status)) for code, status in ROW.findall(GUIDE.read_text())}
    assert known <= told


def test_every_state_and_reason_is_in_the_guide() -> None:
    text = GUIDE.read_text()
    assert [state for state in PurchaseState if f"`{state.value}`" not in text] == []
    assert [reason for reason in RefusalReason.values if f"`{reason}`" not in text] == []
