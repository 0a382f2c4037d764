"""Pages: every row once, in order, whatever is added meanwhile."""

from datetime import timedelta
from typing import Any

from django.utils import timezone

from inventory.models import Product
from rest.pages import Page, page_of
from seckill.models import FlashSale


def pages(query: dict[str, Any], order_by: str = "pk", *, of: type[FlashSale] | type[Product] = Product) -> list[Page]:
    found: list[Page] = []
    after: int | None = None
    while True:
        asked = query if after is None else {**query, "after": after}
        page = page_of(rows=of._default_manager.all(), query=asked, order_by=order_by, view=lambda row: row.pk)
        found.append(page)
        if (after := page.next_after) is None:
            return found


def test_each_row_once_and_the_last_page_says_so() -> None:
    made = [Product.objects.create(name=f"{number}").pk for number in range(6)]
    cut = pages({"page_size": 4})
    assert [page.results for page in cut] == [made[:4], made[4:]]
    assert [page.results for page in pages({"page_size": 3})] == [made[:3], made[3:]]
    assert pages({"page_size": 6})[0].next_after is None


def test_downwards_by_a_column_in_which_rows_are_alike() -> None:
    now = timezone.now()
    hours = [1, 2, 2, 2, 3]
    made = [
        FlashSale.objects.create(name="x", opens_at=now + timedelta(hours=h), closes_at=now + timedelta(hours=9)).pk
        for h in hours
    ]
    cut = pages({"page_size": 2}, "-opens_at", of=FlashSale)
    assert [pk for page in cut for pk in page.results] == list(reversed(made))
    upwards = pages({"page_size": 2}, "opens_at", of=FlashSale)
    assert [pk for page in upwards for pk in page.results] == made


def test_behind_a_row_that_is_not_there_is_nothing() -> None:
    Product.objects.create(name="x")
    page = page_of(rows=Product.objects.all(), query={"page_size": 5, "after": 10**17}, view=lambda row: row.pk)
    assert (page.results, page.next_after) == ([], None)
