"""What the code notes of incidents and dead letters is read in Chinese too: every sentence, wherever it is written."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.utils import translation

from seckill.detail_words import TEMPLATES, in_readers_words
from tests.plugin import ROOT

# Sentences are written as a detail; a dead letter's is its error, and the sweep returns what is damaged.
NAMES = {"detail", "error"}
RETURNED_IN = {"sweep.py"}
# Parts of a sentence that are sentences of no meaning alone.
PARTS = {"cannot be preheated: ?", "is not in Redis: ?"}


def shape(node: ast.expr) -> str | None:
    """A text with a mark for each thing that is filled in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "?" for part in node.values)
    return None


def noted(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        is_named = isinstance(node, ast.keyword) and node.arg in NAMES
        if isinstance(node, ast.Assign):
            is_named = any(getattr(target, "id", "") in NAMES for target in node.targets)
        if isinstance(node, ast.Return):
            is_named = path.name in RETURNED_IN and node.value is not None
        if is_named:
            value: Any = node.value  # type: ignore[attr-defined]
            whole = shape(value)
            yield from [whole] if whole else filter(None, map(shape, _texts(value)))


def _texts(value: ast.expr) -> Iterator[ast.expr]:
    """Texts that are written inside something, such as a join."""
    return (node for node in ast.walk(value) if isinstance(node, ast.JoinedStr))


def everything_noted() -> set[str]:
    files = [path for path in (ROOT / "seckill").rglob("*.py") if not {"migrations", "management"} & set(path.parts)]
    return {text for path in files for text in noted(path) if " " in text and any(c.isalpha() for c in text)} - PARTS


def test_every_note_of_the_code_is_known_here() -> None:
    found = everything_noted()
    assert {"Redis and MySQL differ about order ?", "the bucket is not in Redis"} <= found
    with translation.override("zh-hans"):
        unknown = {text for text in found if in_readers_words(text) == text}
    assert unknown == set()


def test_every_template_is_in_chinese_with_all_that_is_filled_in() -> None:
    with translation.override("zh-hans"):
        for template in TEMPLATES:
            assert translation.gettext(template) != template
    with translation.override("en"):
        assert in_readers_words("Redis sold 3 units that MySQL does not have, first to order 1-ab") == (
            "Redis sold 3 units that MySQL does not have, first to order 1-ab"
        )


@pytest.mark.parametrize("text", ["", "(1054, \"Unknown column 'x'\")", "{not} a %s template; at all"])
def test_what_is_not_known_stays_as_it_is(text: str) -> None:
    with translation.override("zh-hans"):
        assert in_readers_words(text) == text


def test_a_note_of_several_is_told_part_by_part() -> None:
    with translation.override("zh-hans"):
        told = in_readers_words("item 5: +1; item 6: -2")
        assert told.count("5") == told.count("6") == 1
        assert "item" not in told
