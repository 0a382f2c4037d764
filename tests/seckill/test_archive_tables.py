"""The rules of the archive's tables hold in the database itself, and its pages only show."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import models
from django.test import Client

from seckill.archive_tables import ArchiveRun, BuyerArchive
from tests.support.archive import archive, end
from tests.support.rows import CHECK_VIOLATED, DUPLICATE, NOW, OUT_OF_RANGE, assert_refused, check_names, error_code
from tests.support.shop import Shop, buy, make_ticket, open_sale

# rule, table, what somebody tries to write, how the database says no
BAD_WRITES: list[tuple[str, type[models.Model], dict[str, Any], frozenset[int]]] = [
    ("archive_stage_known", ArchiveRun, {"stage": "HALF", "finished_at": None}, CHECK_VIOLATED),
    ("archive_finished_when_done", ArchiveRun, {"finished_at": None}, CHECK_VIOLATED),
    ("archive_finished_when_done", ArchiveRun, {"stage": "COPIED", "finished_at": NOW}, CHECK_VIOLATED),
    ("archived_buyer_units_positive", BuyerArchive, {"units": 0}, CHECK_VIOLATED),
    ("archived_buyer_units_positive", BuyerArchive, {"units": -1}, frozenset({OUT_OF_RANGE})),
]


def archived() -> Shop:
    shop = open_sale()
    buy(make_ticket(shop))
    end(shop)
    archive(shop)
    return shop


@pytest.mark.parametrize(("rule", "table", "change", "codes"), BAD_WRITES)
def test_a_row_that_breaks_a_rule_is_refused(
    rule: str, table: type[models.Model], change: dict[str, Any], codes: frozenset[int]
) -> None:
    archived()
    assert_refused(table=table, change=change, rule=rule, codes=codes)


def test_every_rule_has_its_case() -> None:
    assert {case[0] for case in BAD_WRITES} == check_names(ArchiveRun, BuyerArchive)


def test_one_run_per_bucket_and_one_row_per_buyer() -> None:
    shop = archived()
    run = {"pool": shop.pool, "bucket_no": 0, "epoch": 1, "started_at": NOW}
    assert error_code(lambda: ArchiveRun.objects.create(**run)) == DUPLICATE
    key = BuyerArchive.objects.get().limit_key
    row = {"pool": shop.pool, "bucket_no": 0, "limit_key": key, "units": 1}
    assert error_code(lambda: BuyerArchive.objects.create(**row)) == DUPLICATE


def test_the_manifest_is_shown_and_nothing_can_be_changed() -> None:
    archived()
    client = Client()
    client.force_login(User.objects.create_superuser("operator"))
    run = ArchiveRun.objects.get()
    page = f"/admin/seckill/archiverun/{run.pk}/change/"
    answer = client.get(page)
    assert answer.status_code == 200
    assert run.manifest["buyers"]["digest"] in answer.content.decode()
    assert client.post(page, {}).status_code == 403
    buyers = client.get("/admin/seckill/buyerarchive/", {"q": BuyerArchive.objects.get().limit_key})
    assert buyers.context["cl"].result_count == 1
