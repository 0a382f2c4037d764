"""Where things are asked about, as paths of the API."""

from functools import cache

from django.urls import reverse


@cache
def _purchases() -> str:
    return reverse("purchase")


def status_url(order_no: str) -> str:
    """Return where an order number is asked about."""
    return f"{_purchases()}{order_no}/"
