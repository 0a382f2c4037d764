"""The sale desk in the browser: an operator makes a sale, is told his mistakes, sells, pauses and ends; others look."""

from datetime import timedelta
from decimal import Decimal
from pathlib import Path

from django.contrib.auth.models import User
from django.utils import timezone
from playwright.sync_api import Page, expect

from inventory.changes import submit
from inventory.models import Product, Sku
from inventory.services import receive
from seckill.change_tables import ItemAdjustment
from seckill.gate.keys import BucketRef
from seckill.models import FlashSale, SaleItem, SalePool
from tests.browser.steps import settle
from tests.browser.test_everybody import overflow
from tests.browser.visitor import DESKTOP, PHONE, Visitor, shoot
from tests.support.people import person
from tests.support.shop import Shop, buy, make_tickets
from tests.support.state import numbers

SEES = (
    "view_flashsale",
    "view_salepool",
    "view_saleitem",
    "view_incident",
    "view_itemadjustment",
    "view_stockmovement",
)
SELLS = (
    *SEES,
    "add_flashsale",
    "change_flashsale",
    "add_salepool",
    "add_saleitem",
    "add_windowchange",
    "add_itemadjustment",
)


def skus(number: int) -> list[Sku]:
    product = Product.objects.create(name="跑鞋 Pegasus")
    made = []
    for size in range(36, 36 + number):
        sku = Sku.objects.create(product=product, code=f"SHOE-{size}", name=str(size), list_price=Decimal("899.00"))
        receive(sku_id=sku.pk, units=30, reference=sku.code, now=timezone.now())
        made.append(sku)
    return made


def submit_form(page: Page, name: str) -> None:
    page.locator(".sale-desk").get_by_role("button", name=name).click()


def make_the_sale(page: Page) -> None:
    """Fill in the form with two mistakes, see them told, mend them."""
    now = timezone.localtime()
    page.locator("[name=name]").fill("双十一 跑鞋")
    page.locator("[name=opens_at]").fill((now + timedelta(hours=3, minutes=12)).strftime("%Y-%m-%dT%H:%M"))
    page.locator("[name=closes_at]").fill((now + timedelta(hours=5)).strftime("%Y-%m-%dT%H:%M"))
    expect(page.locator(".beside").first).to_contain_text("in 3 h 1")
    page.locator("[name=items-0-sku]").fill("SHOE-36")
    page.locator("[name=items-0-price]").fill("69.90")
    page.locator("[name=items-0-units]").fill("40")
    submit_form(page, "Check and save as a draft")
    wrong = page.locator(".wrong")
    expect(wrong.filter(has_text="type it a second time")).to_be_visible()
    expect(wrong.filter(has_text="the warehouse has 30")).to_be_visible()
    shoot(page, "sale-desk-mistakes")
    page.locator("[name=items-0-price]").fill("699.00")
    page.locator("[name=items-0-units]").fill("5")
    page.get_by_role("button", name="Add an item").click()
    expect(page.locator("[name=items-3-sku]")).to_be_focused()
    submit_form(page, "Check and save as a draft")
    expect(page.locator(".sale-desk .badge").first).to_have_text("draft")


def import_items(page: Page, folder: Path) -> None:
    """A file with a mistake, then the right one."""
    file = folder / "items.csv"
    page.get_by_role("link", name="Import items").click()
    file.write_bytes("SKU编码,价格,数量\nSHOE-37,699.00,5\nSHOE-99,¥699,5\n".encode("gb18030"))
    page.locator("[name=file]").set_input_files(file)
    submit_form(page, "Read the file")
    expect(page.locator(".is-bad")).to_contain_text("2 mistakes")
    shoot(page, "sale-desk-import-mistakes")
    file.write_text("sku,price,units\nSHOE-37,699.00,5\nSHOE-38,699.00,5\n")
    page.locator("[name=file]").set_input_files(file)
    submit_form(page, "Read the file")
    expect(page.locator(".panel")).to_contain_text("2 items, no mistakes")
    shoot(page, "sale-desk-import")
    page.locator("[name=reason]").fill("the other two sizes")
    submit_form(page, "Import these 2 items")
    expect(page.locator(".numbers").first.locator("tbody tr")).to_have_count(3)


def do(page: Page, name: str) -> None:
    """Press a button of the sale's page, and confirm with a reason."""
    page.locator(".sale-desk .desk-buttons").get_by_role("link", name=name).click()
    page.locator("[name=reason]").fill("a buyer found a wrong picture")
    if name == "Pause":
        shoot(page, "sale-desk-pause")
    submit_form(page, name)


def pause_one(page: Page, code: str) -> None:
    """Pause one item from its line; the sale stays live, and the others go on."""
    line = page.locator(".numbers").first.locator("tr").filter(has_text=code)
    line.get_by_role("link", name="Pause").click()
    expect(page.locator(".what-happens")).to_contain_text("the others go on")
    page.locator("[name=reason]").fill("the picture shows another shoe")
    shoot(page, "sale-desk-pause-one")
    submit_form(page, "Pause")
    expect(line.locator(".badge")).to_have_text("paused")
    word(page, "live")


def word(page: Page, text: str) -> None:
    expect(page.locator(".sale-desk .badge").first).to_have_text(text)


def test_an_operator_makes_sells_pauses_and_ends_a_sale(visitor: Visitor, tmp_path: Path) -> None:
    skus(3)
    operator = person(*SELLS)
    page = visitor.open("/admin/sales/new/", buyer=operator, viewport=DESKTOP)
    make_the_sale(page)
    import_items(page, tmp_path)
    shoot(page, "sale-desk-draft")
    # The morning passes.
    FlashSale.objects.update(opens_at=timezone.now() - timedelta(minutes=1))
    page.get_by_role("link", name="Preheat").click()
    expect(page.locator(".sale-desk")).to_contain_text("15 units go from the warehouse to this sale, into one pool.")
    shoot(page, "sale-desk-preheat")
    page.locator("[name=reason]").fill("checked with the buyer")
    submit_form(page, "Preheat it so")
    word(page, "live")
    sale, pool = FlashSale.objects.get(), SalePool.objects.get()
    shop = Shop(sale=sale, pool=pool, items=list(SaleItem.objects.order_by("pk")))
    assert shop.bucket == BucketRef(pool_id=pool.pk, number=0)

    assert all("-" in buy(ticket) for ticket in make_tickets(shop, 4))
    do(page, "Pause")
    word(page, "paused")
    shoot(page, "sale-desk-paused")
    late = make_tickets(shop, 12)
    assert buy(late[0]) == "Paused"
    do(page, "Resume")
    word(page, "live")
    pause_one(page, "SHOE-37")
    add_ten(visitor, shop, operator)
    assert [buy(ticket)[:1].isdigit() for ticket in late] == [True] * 11 + [False]
    settle(shop)
    assert (numbers(shop).left[shop.item.pk], SaleItem.objects.count()) == (0, 3)
    watch(visitor, shop, operator)
    look_on(visitor, shop)
    do(page, "End now")
    word(page, "ended")
    shoot(page, "sale-desk-ended")
    assert buy(make_tickets(shop, 1)[0]) == "Ended"


def add_ten(visitor: Visitor, shop: Shop, operator: User) -> None:
    """The operator asks for ten more, somebody else approves while the sale runs."""
    change = submit(
        change=ItemAdjustment(item=shop.item, delta=10, reason="found in the back"), by=operator, now=timezone.now()
    )
    approver = person(*SEES, "approve_itemadjustment")
    page = visitor.open(f"/admin/seckill/itemadjustment/{change.pk}/decide/", buyer=approver, viewport=DESKTOP)
    page.get_by_text("Reject", exact=True).click()
    expect(page.locator("[name=decision]").nth(1)).to_be_checked()
    page.locator("[name=decision]").first.click()
    expect(page.locator("[name=decision]").first).to_be_checked()
    page.locator("[name=reason]").fill("counted them")
    page.get_by_role("button", name="Yes, I have checked it").click()
    expect(page.locator("body")).to_contain_text("applied")


def watch(visitor: Visitor, shop: Shop, operator: User) -> None:
    """The monitor shows the ten sold too."""
    page = visitor.open(f"/admin/monitor/{shop.sale.pk}/", buyer=operator, viewport=DESKTOP)
    expect(page.locator('[data-sum="sold"]')).to_have_text("15")
    shoot(page, "sale-desk-monitor")


def look_on(visitor: Visitor, shop: Shop) -> None:
    """An auditor sees everything and can change nothing; a phone shows it too."""
    page = visitor.open(f"/admin/sales/{shop.sale.pk}/", buyer=person(*SEES), viewport=PHONE)
    expect(page.locator(".numbers").first).to_contain_text("SHOE-38")
    expect(page.locator(".sale-desk .act")).to_have_text(["Live monitor", "All fields"])
    assert overflow(page) == 0
    shoot(page, "sale-desk-auditor-phone")
    for path in ("pause/", "end/", "preheat/", "import/", "window/"):
        answer = page.request.get(f"{visitor.url}/admin/sales/{shop.sale.pk}/{path}")
        assert answer.status == 403
