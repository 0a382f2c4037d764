"""What was noted of an incident or a dead letter, in the reader's language; it is stored as the code wrote it.

The code notes in English and for good, whoever reads it later; so the sentences that it notes stand here once more,
with names for what they were filled in with, and are found again by their form. What a database said stays as it is.
"""

import re

from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

TEMPLATES = (
    _("Redis sold {units} units that MySQL does not have, first to order {order}"),
    _("Redis and MySQL differ about order {order}"),
    _("order {order} could not be written: {error}"),
    _("{number} to be decided, the latest: {entry}: {error}"),
    _("it killed its worker {number} times"),
    _("{number} workers died settling; batches have at most {size} entries until one goes well"),
    _("an approved change, or a transfer between buckets, waits for over a minute to be applied"),
    _("the stock Redis does not answer: nothing is sold of {number} buckets, from {bucket} on"),
    _("{number} rebuilds began by themselves within {minutes} minutes; it stays shut until manage.py rebuild"),
    _("the bucket's lock could not be had since {time} UTC; who keeps it is not known"),
    _("the bucket's lock is busy: {blocker}"),
    _("session {number} has kept it in a transaction of {seconds} s, and runs {query}"),
    _("{sale} opens at {time} UTC and cannot be preheated: {error}"),
    _("{sale} opens at {time} UTC and is not in Redis: {damage}"),
    _("the bucket is not in Redis"),
    _("the gate is of epoch {epoch}, MySQL of {other}"),
    _("the gate is frozen and no rebuild is at it"),
    _("the stock does not have the items it ought to have"),
    _("the gate has another limit than MySQL"),
    _("the stock has other prices than MySQL"),
    _("the gate has another window than MySQL"),
    _("the pool has no such item"),
    _("a number is out of range"),
    _("{copied} buyers are copied of {expected}, or their digests differ; copied anew"),
    _("{number} differ: {first}"),
    _("{member} {name}: Redis {in_redis}, MySQL {in_mysql} ({outcome})"),
    _("{kind} {name}: stored {stored}, ledger {ledger}"),
    _("item {item}: {drift}"),
    _("order {order}: {error}"),
)
FIELD = re.compile(r"\{(\w+)\}")
BETWEEN = "; "


def _form(template: str) -> re.Pattern[str]:
    parts = FIELD.split(template)
    texts = [re.escape(part) if number % 2 == 0 else f"(?P<{part}>.+?)" for number, part in enumerate(parts)]
    return re.compile("".join(texts), re.DOTALL)


FORMS = tuple((template, _form(template)) for template in TEMPLATES)


def in_readers_words(noted: str) -> str:
    """The note in the language of this request, as far as its form is known."""
    for template, form in FORMS:
        if (found := form.fullmatch(noted)) is not None:
            return gettext(template).format(
                **{name: in_readers_words(text) for name, text in found.groupdict().items()}
            )
    first, between, rest = noted.partition(BETWEEN)
    return f"{in_readers_words(first)}{between}{in_readers_words(rest)}" if between else noted
