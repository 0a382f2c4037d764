"""How the buyers' pages write money and instants."""

from datetime import datetime
from decimal import Decimal
from typing import Any

from django import template
from django.conf import settings
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timezone import localtime

register = template.Library()


@register.filter
def money(amount: Decimal) -> str:
    """Write an amount in the shop's currency, as ¥1,499.00, as the scripts do in both languages."""
    return f"{settings.CURRENCY_SIGN}{amount:,.2f}"


@register.filter
def instant(at: datetime) -> SafeString:
    """Write an instant so that a script can put it into its reader's zone, and he who has none can read it too."""
    local = localtime(at)
    text = f"{date_format(local, 'SHORT_DATE_FORMAT')} {date_format(local, 'H:i')} {local:%Z}"
    return format_html('<time datetime="{}">{}</time>', at.isoformat(), text)


@register.simple_tag
def currency_sign() -> str:
    """Return the sign of the shop's currency, for the scripts."""
    return str(settings.CURRENCY_SIGN)


@register.filter
def up_to(limit: int) -> Any:
    """Return the numbers a buyer may choose from: 1 to the limit, at most ten."""
    return range(1, min(limit, 10) + 1)
