"""Findings: what was looked at, whether it is well, and what to do where it is not."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """How bad it is: a failure loses units, money or sleep sooner or later."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that was looked at; ``advice`` is empty where all is well. Never holds a secret."""

    topic: str
    verdict: Verdict
    what: str
    advice: str = ""


# One part of the examination; what it raises is a finding too.
Examiner = Callable[[], Iterator[Finding]]


def ok(topic: str, what: str) -> Finding:
    """All is well."""
    return Finding(topic=topic, verdict=Verdict.OK, what=what)


def warn(topic: str, what: str, advice: str) -> Finding:
    """It works, and will not always."""
    return Finding(topic=topic, verdict=Verdict.WARN, what=what, advice=advice)


def fail(topic: str, what: str, advice: str) -> Finding:
    """This must not go into a sale."""
    return Finding(topic=topic, verdict=Verdict.FAIL, what=what, advice=advice)


def judge(*, topic: str, is_well: bool, what: str, else_what: str = "", advice: str) -> Finding:
    """A failure unless it is well."""
    return ok(topic, what) if is_well else fail(topic, else_what or what, advice)
