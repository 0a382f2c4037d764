"""The rule that denies a ticket on purpose."""

from datetime import datetime, timedelta

from django.contrib.auth.models import AbstractBaseUser

from seckill.eligibility import Denied
from seckill.models import SaleItem

MEMBERS_SKU = "OUTCOME-TICKET_DENIED"
MEMBERS_FIRST = timedelta(days=1)


def members_first(_buyer: AbstractBaseUser, item: SaleItem, now: datetime) -> Denied | None:
    """Deny everybody tickets for the one item that is there for it."""
    if item.sku.code != MEMBERS_SKU:
        return None
    return Denied(reason="members_first", until=now + MEMBERS_FIRST)
