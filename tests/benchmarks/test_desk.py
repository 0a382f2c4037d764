"""Every page of the operator's desk with a crowd behind it: few statements, no buyer read, nothing listed whole."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from benchmarks import desk_data
from benchmarks.desk_pages import measure, open_all
from tests.support.shop import open_sale

# Of what is made, more than any page may read; the pages' seconds are measured with a million (make bench-desk).
BUYERS, ORDERS = 20_000, 5_000


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_no_page_asks_much_or_reads_buyers() -> None:
    data = desk_data.make(desk_data.Sizes.of(buyers=BUYERS, orders=ORDERS))
    client = Client()
    client.force_login(User.objects.create_superuser("boss"))
    pages = list(open_all(client=client, data=data, choices_max=1))
    assert len(pages) > 150
    assert {page.name: page.faults for page in pages if page.faults} == {}


def test_the_look_at_redis_sees_a_page_that_reads_buyers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: a page that goes through all marks is found."""
    from seckill import monitor, monitor_pages
    from seckill.gate.connection import raw_client

    shop = open_sale()
    data = desk_data.DeskData(
        sale_id=shop.sale.pk,
        pool_id=shop.pool.pk,
        item_id=shop.item.pk,
        sku_id=shop.item.sku_id,
        bucket=shop.bucket,
        order_no="",
        buyer_id=0,
    )
    client = Client()
    client.force_login(User.objects.create_superuser("boss"))
    url = f"/admin/monitor/{shop.sale.pk}/now.json"
    assert measure(client=client, name="now", url=url, data=data).faults == []
    sound = monitor.picture_of

    def greedy(**which: object) -> object:
        raw_client().hgetall(shop.bucket.keys[2])
        return sound(**which)  # type: ignore[arg-type]

    monkeypatch.setattr(monitor_pages, "picture_of", greedy)
    monitor_pages._pictures.forget()
    assert measure(client=client, name="now", url=url, data=data).members_read == [f"HGETALL {shop.bucket.keys[2]}"]
