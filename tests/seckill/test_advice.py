"""Whoever is called learns what was done and what is left to do, for every kind of incident the code can open."""

import ast
import importlib
from pathlib import Path

from django.utils.translation import override

from seckill.advice import ADVICE, UNKNOWN, advice_for
from tests.plugin import ROOT

OPENERS = {"open_incident": 0, "_open": 0}


def kinds_opened(path: Path) -> set[str]:
    """The kinds a module opens incidents of; its calls name them by a text or a constant."""
    module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in OPENERS:
            named = [word.value for word in node.keywords if word.arg == "kind"] + list(node.args[:1])
            found |= {getattr(word, "value", None) or getattr(module, getattr(word, "id", ""), None) for word in named}
    return {kind for kind in found if isinstance(kind, str)}


def test_every_kind_of_incident_has_its_advice() -> None:
    sources = [path for path in (ROOT / "seckill").rglob("*.py") if "migrations" not in path.parts]
    kinds = set().union(*(kinds_opened(path) for path in sources))
    assert {"drift", "phantom", "redis_lost", "commits_lost", "row_refused"} <= kinds
    assert kinds - ADVICE.keys() == set()


def test_an_advice_is_two_whole_sentences() -> None:
    with override("en"):
        assert all(str(advice.what)[0].isupper() and str(advice.what)[-1] != "." for advice in ADVICE.values())
        for kind, advice in {**ADVICE, "unknown": UNKNOWN}.items():
            for text in (str(advice.did), str(advice.can)):
                assert text[0].isupper(), kind
                assert text.endswith("."), kind
    assert advice_for("drift") is ADVICE["drift"]
    assert advice_for("never heard of") is UNKNOWN
