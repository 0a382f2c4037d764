"""What purchases were answered, counted by outcome; a refused one leaves this number behind and nothing else."""

import re

from prometheus_client import Counter

from metrics.definitions import PURCHASES
from seckill.errors import PurchaseRefused

ACCEPTED = "accepted"

# By the error's class; finding the name and the counter anew would cost more than counting.
_counters: dict[type[PurchaseRefused] | None, Counter] = {}


def count_answer(refusal: PurchaseRefused | None) -> None:
    """Count one purchase, accepted or refused, in this process."""
    kind = None if refusal is None else type(refusal)
    if (counter := _counters.get(kind)) is None:
        counter = _counters[kind] = PURCHASES.labels(ACCEPTED if kind is None else outcome_of(kind))
    counter.inc()


def outcome_of(kind: type[PurchaseRefused]) -> str:
    """Return how a refusal is called where outcomes are counted: as the API's code, ``SoldOut`` is ``sold_out``."""
    family = next(cls for cls in kind.__mro__ if PurchaseRefused in cls.__bases__)
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", family.__name__).lower().removeprefix("gate_")


def show_all() -> None:
    """Begin every counter at 0, so that the first refusal of a kind is seen as an increase."""
    PURCHASES.labels(ACCEPTED)
    for kind in PurchaseRefused.__subclasses__():
        PURCHASES.labels(outcome_of(kind))
