"""What the documents promise is there: each test that they name exists, and each case of parts A to D has its row."""

import re
from pathlib import Path

import pytest

from tests.plugin import ROOT

CASES = range(1, 38)

NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
FILES = re.compile(r"`((?:tests/)?[\w/]*test_\w+\.py)")


def text(name: str) -> str:
    return (ROOT / "docs" / name).read_text()


def rows() -> dict[int, str]:
    """The rows of the table of cases, by number."""
    found = re.findall(r"^\| (\d+) \|(.*)\|$", text("cases.md"), re.MULTILINE)
    assert len(found) == len({number for number, _ in found})
    return {int(number): row for number, row in found}


@pytest.mark.parametrize("name", ["cases.md", "guarantees.md"])
def test_every_test_that_is_named_exists(name: str) -> None:
    named = NAMED.findall(text(name))
    assert len(named) > 20
    missing = [
        f"{path}::{function}"
        for path, function in named
        if not Path(ROOT / path).exists() or f"def {function}(" not in (ROOT / path).read_text()
    ]
    assert missing == []
    assert [path for path in FILES.findall(text(name)) if not (ROOT / path).exists()] == []


def test_every_case_has_its_row() -> None:
    assert sorted(rows()) == list(CASES)
    assert [number for number, row in rows().items() if not NAMED.search(row) or "open:" in row] == []
