"""CSV that can be of any length and opened in a spreadsheet without running anything."""

import csv
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from django.http import StreamingHttpResponse

# A spreadsheet takes a cell that begins so for a formula, and runs it; an apostrophe makes it a text.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
# Spreadsheets take a file without it for one in the machine's own encoding.
BYTE_ORDER_MARK = "﻿"
LINES_PER_PART = 500


class _Echo:
    """A file for the csv module that gives back what is written."""

    def write(self, text: str) -> str:
        return text


def harmless(cell: object) -> object:
    """Return what stands in a cell: texts that would be formulas as texts, numbers as numbers, instants in ISO 8601."""
    if isinstance(cell, datetime):
        return cell.isoformat()
    if isinstance(cell, str) and cell.startswith(FORMULA_STARTS):
        return f"'{cell}"
    return "" if cell is None else cell


def csv_response(*, name: str, columns: Iterable[str], lines: Iterable[Iterable[object]]) -> StreamingHttpResponse:
    """Send lines as a file while they are read; nothing is kept, however many there are."""
    response = StreamingHttpResponse(_parts(columns=columns, lines=lines), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["Cache-Control"] = "no-store"
    return response


def _parts(*, columns: Iterable[str], lines: Iterable[Iterable[object]]) -> Iterator[str]:
    writer: Any = csv.writer(_Echo())
    part = [BYTE_ORDER_MARK, writer.writerow(columns)]
    for line in lines:
        part.append(writer.writerow([harmless(cell) for cell in line]))
        if len(part) >= LINES_PER_PART:
            yield "".join(part)
            part = []
    yield "".join(part)
