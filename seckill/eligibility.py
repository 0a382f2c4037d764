"""Who may have a ticket, and what the limit counts by: small functions named in settings.

A rule takes ``(buyer, item, now)`` and returns None when the buyer may, or a ``Denied``. The first
that denies decides. The limit key is any string of 1 to 64 visible ASCII characters that does not
begin with ``#``; two buyers with the same key share one limit.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.utils.module_loading import import_string

from seckill.models import SaleItem

LIMIT_KEY_FORM = re.compile(r"[!\"$-~][!-~]{0,63}")


@dataclass(frozen=True, kw_only=True)
class Denied:
    """Why a buyer may not have a ticket, and until when, if that passes."""

    reason: str
    until: datetime | None = None


Rule = Callable[[AbstractBaseUser, SaleItem, datetime], Denied | None]
LimitKey = Callable[[AbstractBaseUser, SaleItem], str]


def active_account(buyer: AbstractBaseUser, _item: SaleItem, _now: datetime) -> Denied | None:
    """Deny accounts that an operator has switched off."""
    return None if buyer.is_active else Denied(reason="account_inactive")


def account_key(buyer: AbstractBaseUser, _item: SaleItem) -> str:
    """Count the limit by account: the primary key, never anything the request says."""
    return str(buyer.pk)


def first_denial(*, buyer: AbstractBaseUser, item: SaleItem, now: datetime) -> Denied | None:
    """Ask all rules of the settings, in order."""
    for rule in _rules():
        denied = rule(buyer, item, now)
        if denied is not None:
            return denied
    return None


def limit_key(*, buyer: AbstractBaseUser, item: SaleItem) -> str:
    """Return the buyer's limit key for an item.

    Raises ``ValueError`` when the configured function returns what is no limit key.
    """
    key = _limit_key_function()(buyer, item)
    if LIMIT_KEY_FORM.fullmatch(key) is None:
        raise ValueError(f"{key!r} is not a limit key")
    return key


@cache
def _rules() -> tuple[Rule, ...]:
    return tuple(import_string(path) for path in settings.SECKILL["eligibility"])


@cache
def _limit_key_function() -> LimitKey:
    function: LimitKey = import_string(settings.SECKILL["limit_key"])
    return function
