"""What the scripts of the operator's pages say: no key without its text, and no text that nobody says."""

import re
from pathlib import Path

from django.utils import translation

from seckill.desk_texts import TEXTS

SCRIPTS = Path(__file__).resolve().parent.parent.parent / "seckill" / "static" / "desk"
# Keys that are put together where they are said.
FAMILIES = ("phase_", "verdict_", "gate_", "stage_")


def test_every_text_is_said_and_every_word_has_its_text() -> None:
    scripts = "\n".join(path.read_text() for path in sorted(SCRIPTS.glob("*.js")))
    asked_for = set(re.findall(r"""\bt\(\s*["'](\w+)["']""", scripts))
    assert asked_for - set(TEXTS) == set()
    quoted = set(re.findall(r"""["'](\w+)["']""", scripts))
    assert {key for key in TEXTS if not key.startswith(FAMILIES)} - quoted == set()


def test_everything_is_said_in_chinese_too() -> None:
    with translation.override("en"):
        english = {key: str(text) for key, text in TEXTS.items()}
    with translation.override("zh-hans"):
        chinese = {key: str(text) for key, text in TEXTS.items()}
    assert {key for key in TEXTS if english[key] == chinese[key]} == set()
