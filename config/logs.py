"""How log lines are written: one JSON object each, or for people where DEBUG is on; secrets and addresses cut out.

Nothing of the kind should come as far as here. What does all the same, in the words of a library or a database, is cut
out by its form: addresses of mail, what Django or a token service has signed, credentials in headers and in URLs.
"""

import json
import logging
import re
from collections.abc import Mapping, MutableMapping
from datetime import UTC, datetime
from typing import Any

import structlog
from structlog.contextvars import get_contextvars
from structlog.typing import Processor

_FORMS = (
    (re.compile(r"[\w.+%-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}"), "<address>"),
    # Before what is signed: a credential may have any form.
    (re.compile(r"\b(Bearer|Basic|Ticket|Token)\s+[^\s\"']{16,}"), r"\1 <secret>"),
    (re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]+"), "<token>"),
    (re.compile(r"[\w.-]+(?::[\w-]+)*:[\w-]{43}\b"), "<signed>"),
    (re.compile(r"(reset/[^/\s]+/)[^/\s]+"), r"\1<secret>"),
    (re.compile(r"(://[^:/@\s]*):[^@/\s]+@"), r"\1:<secret>@"),
    (re.compile(r"(?i)\b((?:password|secret|sessionid|csrftoken)\b[\"']?\s*[=:]\s*[\"']?)[^\s\"',;&]+"), r"\1<secret>"),
)
# A line without any of these has nothing to cut out.
_MARKS = re.compile(r"[@:=]|eyJ|reset/|Bearer|Basic|Ticket|Token")

# What every record has; the rest was given along by whoever logs.
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


def without_secrets(text: str) -> str:
    """Return a text with everything cut out that has the form of a secret or of an address."""
    if _MARKS.search(text) is None:
        return text
    for form, instead in _FORMS:
        text = form.sub(instead, text)
    return text


def cut_secrets(_logger: Any, _name: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """Do so in every text of a line (a processor of structlog's)."""
    for name, value in event.items():
        if isinstance(value, str):
            event[name] = without_secrets(value)
        elif isinstance(value, (list, tuple, dict)):
            event[name] = without_secrets(str(value))
    return event


BEFORE: list[Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.stdlib.ExtraAdder(),
    structlog.processors.format_exc_info,
    cut_secrets,
]


class RequestLine(logging.Formatter):
    """The same line for requests, in a third of the time: its fields are the shop's own, nothing is to be cut out."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one JSON object."""
        given = {name: value for name, value in vars(record).items() if name not in _STANDARD}
        line = {
            **given,
            **get_contextvars(),
            "event": record.getMessage(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(),
        }
        return json.dumps(line, default=str)


def logging_settings(*, is_for_people: bool, level: str, levels: Mapping[str, str]) -> dict[str, Any]:
    """Return what Django hands to ``logging.config``."""
    renderer = structlog.dev.ConsoleRenderer() if is_for_people else structlog.processors.JSONRenderer()
    structured = {"()": structlog.stdlib.ProcessorFormatter, "processor": renderer, "foreign_pre_chain": BEFORE}
    quick = "structured" if is_for_people else "request"
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"structured": structured, "request": {"()": "config.logs.RequestLine"}},
        "handlers": {
            "stderr": {"class": "logging.StreamHandler", "formatter": "structured"},
            "requests": {"class": "logging.StreamHandler", "formatter": quick},
        },
        "loggers": {
            # Django warns of every 4xx; a rush is made of refusals, and each would be a line.
            "django.request": {"level": "ERROR"},
            # Axes tells of each log-in; a rush begins with thousands.
            "axes": {"level": "WARNING"},
            # Celery tells of each task twice; beat sends several a second. They are counted, and failures are told.
            "celery.worker.strategy": {"level": "WARNING"},
            "celery.app.trace": {"level": "WARNING"},
            "celery.beat": {"level": "WARNING"},
            "shop.requests": {"handlers": ["requests"], "propagate": False},
            **{name: {"level": value} for name, value in levels.items() if name != "shop.requests"},
            **(
                {"shop.requests": {"handlers": ["requests"], "propagate": False, "level": levels["shop.requests"]}}
                if "shop.requests" in levels
                else {}
            ),
        },
        "root": {"handlers": ["stderr"], "level": level},
    }
