"""Items from a CSV file: every line's mistakes are told, and all lines are written or none."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from inventory.models import Product, Sku
from inventory.services import receive
from seckill.errors import SaleNotReady
from seckill.item_file import BYTES_MAX, LINES_MAX, ItemFile, read_items, write_items
from seckill.models import FlashSale, SaleItem, SalePool
from seckill.states import SaleState

HEADER = "sku,price,units,price_again\n"


@pytest.fixture
def pool() -> SalePool:
    """The empty pool of a sale that opens in an hour."""
    now = timezone.now()
    sale = FlashSale.objects.create(name="s", opens_at=now + timedelta(hours=1), closes_at=now + timedelta(hours=2))
    for code in ("A-1", "A-2", "=B"):
        product = Product.objects.create(name="鞋")
        sku = Sku.objects.create(product=product, code=code, name="42", list_price=Decimal("100.00"))
        receive(sku_id=sku.pk, units=50, reference=code, now=now)
    return SalePool.objects.create(sale=sale)


def read(pool: SalePool, text: str | bytes) -> ItemFile:
    content = text if isinstance(text, bytes) else text.encode()
    return read_items(content=content, pool_id=pool.pk, now=timezone.now())


def told(pool: SalePool, text: str | bytes) -> list[tuple[int, str, str]]:
    return [(mistake.line, mistake.column, mistake.found) for mistake in read(pool, text).mistakes]


def write(pool: SalePool, text: str) -> int:
    return write_items(content=text.encode(), pool_id=pool.pk, now=timezone.now())


GOOD = HEADER + "A-1,80.00,5,\nA-2,40,6,40.00\n"


@pytest.mark.parametrize(
    "content",
    [
        GOOD.encode(),
        GOOD.encode("utf-8-sig"),
        GOOD.replace("\n", "\r\n").encode(),
        GOOD.replace(",", ";").encode(),
        GOOD.replace(",", "\t").encode(),
        GOOD.replace(HEADER, "SKU编码,价格,数量,再次输入价格\n").encode("gb18030"),
        GOOD.replace("A-1", '"a-1"').encode() + b"\n,,,\n",
    ],
)
def test_a_good_file_is_read_however_it_was_saved(pool: SalePool, content: bytes) -> None:
    found = read(pool, content)
    assert found.mistakes == ()
    assert [(line.line, line.item.price, line.item.units) for line in found.items] == [
        (2, Decimal("80.00"), 5),
        (3, Decimal(40), 6),
    ]
    assert [(warning.line, warning.column) for warning in found.warnings] == [(3, "price")]


def test_every_mistake_is_told_with_line_and_column(pool: SalePool) -> None:
    text = HEADER + "A-1,¥80,5,\nX-9,80,1e3,\nA-2,80.005,0,8\nA-1,80,5.0,\n,,7,\n"
    assert told(pool, text) == [
        (2, "price", "¥80"),
        (3, "sku", "X-9"),
        (3, "units", "1e3"),
        (4, "price", "80.005"),
        (4, "units", "0"),
        (5, "sku", "A-1"),
        (5, "units", "5.0"),
        (6, "price", ""),
        (6, "sku", ""),
    ]
    found = read(pool, text).mistakes[5]
    assert found.words == "The same SKU stands in line 2 already. Put its units into one line."
    with pytest.raises(SaleNotReady, match="nothing was imported"):
        write(pool, text)
    assert not SaleItem.objects.exists()


def test_what_a_plan_may_not_have_is_told_at_its_line(pool: SalePool) -> None:
    assert told(pool, HEADER + "A-1,80,51,\nA-2,100.01,1,\n=B,49,1,\n") == [
        (2, "units", "51"),
        (3, "price", "100.01"),
        (4, "price_again", "49"),
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "no items"),
        (HEADER.encode(), "no items"),
        (b"sku,price\nA-1,80\n", "units is missing"),
        (b"sku,price,units,price\nA-1,80,1,80\n", "names a column twice"),
        (b"sku,price,units\nA-1,1,499.00,5\n", "comma in a number"),
        (HEADER.encode() + b'"A-1,80,5,\n', "quotation mark"),
        (b"PK\x03\x04\x00\x00\xff\xff", "neither UTF-8 nor GB18030"),
        (HEADER.encode() + b"A-1,80,5,\n" * (LINES_MAX + 1), "Split the file"),
        (b"x" * (BYTES_MAX + 1), "larger than 256 KB"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(pool: SalePool, content: bytes, said: str) -> None:
    (mistake,) = read(pool, content).mistakes
    assert said in mistake.words


def test_all_items_are_written_once(pool: SalePool) -> None:
    assert write(pool, GOOD) == 2
    assert list(SaleItem.objects.order_by("pk").values_list("pool_id", "sku__code", "price", "units")) == [
        (pool.pk, "A-1", Decimal("80.00"), 5),
        (pool.pk, "A-2", Decimal("40.00"), 6),
    ]
    assert told(pool, GOOD) == [(2, "sku", "A-1"), (3, "sku", "A-2")]
    with pytest.raises(SaleNotReady, match="nothing was imported"):
        write(pool, GOOD)


def test_units_of_other_pools_count(pool: SalePool) -> None:
    write(pool, HEADER + "A-1,80,45,\n")
    other = SalePool.objects.create(sale=pool.sale, name="members")
    assert told(other, HEADER + "A-1,80,6,\n") == [(2, "units", "6")]
    assert write(other, HEADER + "A-1,80,5,\n") == 1


def test_a_code_that_would_be_a_formula_comes_back_as_our_own_files_write_it(pool: SalePool) -> None:
    assert write(pool, HEADER + "'=B,80,5,\n") == 1


@pytest.mark.parametrize("state", [SaleState.PREHEATED, SaleState.ARCHIVING, SaleState.ARCHIVED])
def test_nothing_is_imported_into_a_fixed_sale(pool: SalePool, state: SaleState) -> None:
    FlashSale.objects.update(state=state)
    with pytest.raises(SaleNotReady, match="its items are fixed"):
        write(pool, GOOD)
    assert not SaleItem.objects.exists()


def test_an_unknown_pool_is_explained() -> None:
    for wish in (read_items, write_items):
        with pytest.raises(SaleNotReady, match="there is no pool 999"):
            wish(content=GOOD.encode(), pool_id=999, now=timezone.now())
