"""Everything a buyer can be told, in Simplified Chinese: nothing untranslated, nothing guessed, nothing left behind."""

import ast
import gettext
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import translation
from django.utils.translation.template import templatize

from config.errors import ANSWERS
from config.problems import FOREIGN
from orders.states import OrderState, PaymentState, RefundState
from seckill.states import RefusalReason
from seckill.texts import TEXTS
from tests.support.api import post_purchase

ROOT = Path(__file__).resolve().parent.parent.parent
LOCALE = ROOT / "locale" / "zh_Hans" / "LC_MESSAGES"
BUYERS_TEMPLATES = ("shop/*.html", "registration/*", "sandbox/*.html", "4*.html")
CALL = re.compile(r"n?gettext\((.*?)\)\s")
FILLED_IN = re.compile(r"\{(\w+)\}|%\((\w+)\)s")


def compiled() -> dict[Any, str]:
    """What was compiled, by English text, or by its singular and a number where it has a plural."""
    with (LOCALE / "django.mo").open("rb") as file:
        found: dict[Any, str] = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
    return found


def catalogue() -> dict[str, str]:
    """What was compiled, by English text."""
    return {key if isinstance(key, str) else key[0]: text for key, text in compiled().items()}


def texts_of_templates() -> Iterator[str]:
    """What the buyers' templates want translated."""
    for pattern in BUYERS_TEMPLATES:
        for path in sorted((ROOT / "templates").glob(pattern)):
            for call in re.findall(
                r"gettext\((u?(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"))", templatize(path.read_text())
            ):
                yield ast.literal_eval(call)


def texts_of_tables() -> Iterator[str]:
    """What the scripts, the problems and the states say."""
    with translation.override("en"):
        yield from map(str, TEXTS.values())
        yield from (str(answer.title) for table in (ANSWERS, FOREIGN) for answer in table.values())
        for states in (OrderState, PaymentState, RefundState, RefusalReason):
            yield from map(str, states.labels)


def test_buyers_are_told_everything_in_chinese() -> None:
    known = catalogue()
    wanted = {*texts_of_templates(), *texts_of_tables()}
    assert len(wanted) > 200
    assert sorted(wanted - known.keys()) == []


def test_nothing_is_guessed_and_all_is_compiled() -> None:
    """``make messages`` marks what it guesses as fuzzy; somebody who reads Chinese has looked at all of it."""
    source = (LOCALE / "django.po").read_text()
    assert "fuzzy" not in source
    known = catalogue()
    pairs = re.findall(r'^msgid "(.+)"\nmsgstr "(.+)"$', source, re.MULTILINE)
    assert len(pairs) > 200
    assert {
        ast.literal_eval(f'"{text}"'): ast.literal_eval(f'"{told}"') for text, told in pairs
    }.items() <= known.items()


def test_what_is_filled_in_is_filled_in_everywhere() -> None:
    """Chinese has one form where English has two: it holds the number that an English singular may leave out."""
    for key, chinese in compiled().items():
        english = key if isinstance(key, str) else key[0]
        told, wanted = filled_in(chinese), filled_in(english)
        if english:
            assert told == wanted or (key != english and told > wanted), english


def filled_in(text: str) -> set[str]:
    return {a or b for a, b in FILLED_IN.findall(text)}


@pytest.mark.parametrize(
    ("asked", "told"),
    [("zh-CN,zh;q=0.9", "购买资格无效。"), ("zh-Hans", "购买资格无效。"), ("fr", "This ticket is not valid.")],
)
def test_problems_speak_the_language_that_was_asked_for(asked: str, told: str) -> None:
    response = Client(headers={"Accept-Language": asked}).post(
        "/api/v1/purchases/", {"ticket": "x", "quantity": 1}, content_type="application/json"
    )
    assert response.json()["title"] == told
    assert response.json()["code"] == "ticket_invalid"
    assert post_purchase(ticket="x").body["title"] == "This ticket is not valid."
