"""Items of a pool from a CSV file: read with the mistakes of every line, written all or not at all.

Columns, in any order, by their English or Chinese names: ``sku``, ``price``, ``units``, and ``price_again``, which only
a suspicious price needs (Note [Suspicious prices]). UTF-8 with or without a byte order mark, or GB18030, as a
spreadsheet in China saves it; commas, semicolons or tabs.
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db import transaction
from django.utils.translation import gettext as _

from inventory.models import UNITS_MAX, Sku
from rest.csv import FORMULA_STARTS
from seckill.changeable import EDITABLE
from seckill.errors import SaleNotReady
from seckill.models import FlashSale, SaleItem, SalePool
from seckill.plan_checks import Finding, Weight, check_added
from seckill.sale_plan import PlannedItem
from seckill.states import SaleState

BYTES_MAX = 256 * 1024
LINES_MAX = 2_000
COLUMNS = ("sku", "price", "units", "price_again")
NAMES: Mapping[str, str] = {
    **{column: column for column in COLUMNS},
    "sku编码": "sku",
    "价格": "price",
    "数量": "units",
    "再次输入价格": "price_again",
}
PRICE_FORM = re.compile(r"[0-9]{1,10}(\.[0-9]{1,2})?")
UNITS_FORM = re.compile(r"[1-9][0-9]{0,9}")
ERRORS_SHOWN_MAX = 100


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """What is wrong in a line of the file (0: in the file), what stood there, and what would be right."""

    line: int
    column: str
    words: str
    found: str = ""


@dataclass(frozen=True, kw_only=True)
class FileItem:
    """One line that could be read."""

    line: int
    code: str
    item: PlannedItem


@dataclass(frozen=True, kw_only=True)
class ItemFile:
    """What a file holds: it is written only where there are no mistakes."""

    items: tuple[FileItem, ...]
    mistakes: tuple[Mistake, ...]
    warnings: tuple[Mistake, ...] = ()

    @property
    def is_sound(self) -> bool:
        """Tell whether the file can be written."""
        return bool(self.items) and not self.mistakes


def read_items(*, content: bytes, pool_id: int, now: datetime) -> ItemFile:
    """Read a file for a pool and check it together with what its sale has already. Writes nothing.

    Raises ``SaleNotReady`` where there is no such pool.
    """
    pool = SalePool.objects.select_related("sale").filter(pk=pool_id).first()
    if pool is None:
        raise SaleNotReady(_("there is no pool {pool_id}").format(pool_id=pool_id))
    try:
        lines = _lines(content)
    except _Unreadable as error:
        return ItemFile(items=(), mistakes=(error.mistake,))
    mistakes: list[Mistake] = []
    items = _items(lines=lines, mistakes=mistakes)
    present = set(SaleItem.objects.filter(pool=pool).values_list("sku_id", flat=True))
    for read in items:
        if read.item.sku_id in present:
            words = _("This SKU is in the pool already. Take the line out, or change the item on its own page.")
            mistakes.append(Mistake(line=read.line, column="sku", words=words, found=read.code))
    findings = [] if mistakes else check_added(pool=pool, items=[read.item for read in items], now=now)
    mistakes += [_as_mistake(f, items) for f in findings if f.weight is Weight.ERROR]
    warnings = tuple(_as_mistake(f, items) for f in findings if f.weight is Weight.WARNING)
    ordered = sorted(mistakes, key=lambda mistake: (mistake.line, mistake.column))
    return ItemFile(items=tuple(items), mistakes=tuple(ordered), warnings=warnings)


def write_items(*, content: bytes, pool_id: int, now: datetime) -> int:
    """Read a file once more and write all its items; return how many.

    Raises ``SaleNotReady``, and nothing is written, when the sale may not be changed any more or a line is wrong.
    """
    with transaction.atomic(durable=True):
        sale_ids = SalePool.objects.filter(pk=pool_id).values_list("sale_id", flat=True)
        sale = FlashSale.objects.select_for_update().filter(pk__in=list(sale_ids)).first()
        if sale is None:
            raise SaleNotReady(_("there is no pool {pool_id}").format(pool_id=pool_id))
        if SaleState(sale.state) not in EDITABLE:
            raise SaleNotReady(_("the sale is {state}; its items are fixed").format(state=sale.get_state_display()))
        read = read_items(content=content, pool_id=pool_id, now=now)
        if not read.is_sound:
            raise SaleNotReady(_("the file has mistakes; nothing was imported"))
        SaleItem.objects.bulk_create(
            SaleItem(pool_id=pool_id, sku_id=line.item.sku_id, price=line.item.price, units=line.item.units)
            for line in read.items
        )
    return len(read.items)


class _Unreadable(Exception):
    """Raised for a file that cannot be read at all."""

    def __init__(self, words: str, *, line: int = 0, found: str = "") -> None:
        super().__init__(words)
        self.mistake = Mistake(line=line, column="", words=words, found=found)


Line = tuple[int, Mapping[str, str]]


def _lines(content: bytes) -> list[Line]:
    """Take a file apart into lines of named cells; empty lines are left out."""
    if len(content) > BYTES_MAX:
        raise _Unreadable(_("The file is larger than {size} KB. Split it.").format(size=BYTES_MAX // 1024))
    text = _text(content)
    first = text.split("\n", 1)[0]
    delimiter = max(",;\t", key=first.count)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    found: list[Line] = []
    header: list[str] | None = None
    try:
        for row in rows:
            cells = [_bare(cell) for cell in row]
            if not any(cells):
                continue
            if header is None:
                header = _header(cells)
            elif len(cells) > len(header) and any(cells[len(header) :]):
                raise _Unreadable(
                    _("The line has more cells than the first line. Is there a comma in a number?"), line=rows.line_num
                )
            else:
                found.append((rows.line_num, dict(zip(header, cells, strict=False))))
            if len(found) > LINES_MAX:
                raise _Unreadable(_("More than {most} lines. Split the file.").format(most=LINES_MAX))
    except csv.Error as error:
        words = _("The line cannot be read as CSV: {error}. Is a quotation mark left open?").format(error=error)
        raise _Unreadable(words, line=rows.line_num) from error
    if not found:
        raise _Unreadable(
            _("The file has no items. Fill in the template: a first line of names, then a line per item.")
        )
    return found


def _text(content: bytes) -> str:
    for encoding in ("utf-8-sig", "gb18030"):
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            continue
        if "\0" not in text:
            return text
    raise _Unreadable(_("The file is neither UTF-8 nor GB18030 text. Save it as CSV, not as a workbook."))


def _bare(cell: str) -> str:
    """A cell without the apostrophe that makes a text of a formula in a spreadsheet."""
    bare = cell.strip()
    return bare[1:] if bare.startswith("'") and bare[1:].startswith(FORMULA_STARTS) else bare


def _header(cells: list[str]) -> list[str]:
    named = [NAMES.get(cell.casefold(), "") for cell in cells]
    missing = [column for column in ("sku", "price", "units") if column not in named]
    if missing:
        words = _("The first line must name the columns {columns}; {missing} is missing.")
        words = words.format(columns=", ".join(COLUMNS), missing=", ".join(missing))
        raise _Unreadable(words, line=1, found=", ".join(cells)[:100])
    if len(set(filter(None, named))) < len(list(filter(None, named))):
        raise _Unreadable(_("The first line names a column twice."), line=1, found=", ".join(cells)[:100])
    return named


def _items(*, lines: list[Line], mistakes: list[Mistake]) -> list[FileItem]:
    codes = {cells.get("sku", "") for _number, cells in lines}
    sku_ids = dict(Sku.objects.filter(code__in=codes).values_list("code", "pk"))
    # MySQL compares codes without case; the file's spelling must find its SKU too.
    sku_ids = {code.casefold(): pk for code, pk in sku_ids.items()}
    seen: dict[int, int] = {}
    items = []
    for line, cells in lines:
        wrong = list(_wrong_cells(line=line, cells=cells, sku_ids=sku_ids, seen=seen))
        mistakes += wrong
        sku_id = sku_ids.get(cells.get("sku", "").casefold())
        if sku_id is not None:
            seen.setdefault(sku_id, line)
        if not wrong and sku_id is not None:
            items.append(FileItem(line=line, code=cells["sku"], item=_planned(sku_id=sku_id, cells=cells)))
    return items


def _wrong_cells(
    *, line: int, cells: Mapping[str, str], sku_ids: Mapping[str, int], seen: Mapping[int, int]
) -> Iterator[Mistake]:
    code = cells.get("sku", "")
    sku_id = sku_ids.get(code.casefold())
    if sku_id is None:
        words = _("There is no SKU with this code. Use a code from the list of SKUs.")
        yield Mistake(line=line, column="sku", words=words, found=code[:64])
    elif sku_id in seen:
        words = _("The same SKU stands in line {line} already. Put its units into one line.").format(line=seen[sku_id])
        yield Mistake(line=line, column="sku", words=words, found=code)
    for column in ("price", "price_again"):
        cell = cells.get(column, "")
        if PRICE_FORM.fullmatch(cell) is None and (cell or column == "price"):
            words = _("A price is digits with at most two after a point, such as 1499.00: no comma, no currency sign.")
            yield Mistake(line=line, column=column, words=words, found=cell[:64])
    units = cells.get("units", "")
    if UNITS_FORM.fullmatch(units) is None or int(units) > UNITS_MAX:
        words = _("Units are a whole number of 1 or more, such as 100: no point, no comma.")
        yield Mistake(line=line, column="units", words=words, found=units[:64])


def _planned(*, sku_id: int, cells: Mapping[str, str]) -> PlannedItem:
    again = cells.get("price_again", "")
    return PlannedItem(
        sku_id=sku_id,
        price=Decimal(cells["price"]),
        units=int(cells["units"]),
        price_again=Decimal(again) if again else None,
    )


def _as_mistake(finding: Finding, items: list[FileItem]) -> Mistake:
    read = items[finding.item or 0]
    found = {"sku": read.code, "units": str(read.item.units)}.get(finding.field, str(read.item.price))
    return Mistake(line=read.line, column=finding.field, words=finding.words, found=found)
