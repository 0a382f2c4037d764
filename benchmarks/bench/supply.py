"""What the loads consume: buyers with accounts, sales, and files of tickets for wrk. Needs Django set up."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.db import close_old_connections
from django.utils import timezone

from benchmarks.catalogue import OpenedSale, schedule_sale
from benchmarks.sale import preheat
from inventory.inserting import insert_rows
from seckill.gate import gate
from seckill.gate.codes import ReserveCode
from seckill.gate.connection import raw_client
from seckill.models import SaleItem, SalePool
from seckill.order_numbers import new_order_number
from seckill.tickets import sign_ticket, ticket_end

CHUNK = 1_000
PREFIX = "bench-"


def buyer_ids(count: int) -> list[int]:
    """Return so many buyers with accounts, as orders want them; made where they are missing.

    The same ones buy in every sale: a limit counts in one.
    """
    close_old_connections()
    known = User.objects.filter(username__startswith=PREFIX).order_by("pk")
    missing = count - known.count()
    password, now = make_password(None), timezone.now()
    numbers = iter(range(count - missing, count))
    while chunk := list(islice(numbers, CHUNK)):
        insert_rows([User(username=f"{PREFIX}{n}", password=password, date_joined=now) for n in chunk])
    return list(known.values_list("pk", flat=True)[:count])


def open_sale(*, name: str, units: int) -> OpenedSale:
    """Open a sale of one item with so many units, a limit of one and a queue as long as all of them."""
    close_old_connections()  # The server ends one that was quiet for a minute, as while wrk runs.
    sale = schedule_sale(name=name, units=units, opens_at=timezone.now())
    SalePool.objects.filter(pk=sale.bucket.pool_id).update(max_queue=max(1, units))
    preheat(sale)
    return sale


def units_left(sale: OpenedSale) -> int:
    """Units that Redis has left: what was sold meanwhile is what was accepted, whatever anybody was told."""
    return int(raw_client().hget(sale.bucket.keys[0], f"{sale.item_id}:left") or 0)


def queue_length(sale: OpenedSale) -> int:
    """Reservations that wait for MySQL."""
    return int(raw_client().xlen(sale.bucket.keys[4]))


def signed_tickets(*, sale: OpenedSale, buyers: list[int]) -> Iterator[tuple[str, str]]:
    """Give each buyer a ticket: order number and text. The row that lists it is left out: nothing hot reads it."""
    item = SaleItem.objects.select_related("pool__sale").get(pk=sale.item_id)
    for buyer in buyers:
        order_no = new_order_number(sale.bucket)
        yield order_no, sign_ticket(order_no=order_no, item=item, buyer_id=buyer, key=str(buyer))


def write_tickets(*, sale: OpenedSale, buyers: list[int], path: Path, is_added: bool = False) -> Path:
    """Write a file of tickets for ``purchase.lua``, or add to one that it has begun."""
    with path.open("a" if is_added else "w") as file:
        file.writelines(f"{ticket}\n" for _, ticket in signed_tickets(sale=sale, buyers=buyers))
    if not is_added:
        next_of(path).unlink(missing_ok=True)
    return path


def next_of(path: Path) -> Path:
    """Where the script notes how many tickets of a file it has used."""
    return path.with_name(f"{path.name}.next")


def used_tickets(path: Path) -> int:
    """How many tickets of a file are used."""
    return int(next_of(path).read_text()) if next_of(path).exists() else 0


def reserve_for(*, sale: OpenedSale, buyers: list[int]) -> list[str]:
    """Let the buyers reserve one unit each, past HTTP; nobody is woken. Return their order numbers."""
    item = SaleItem.objects.select_related("pool__sale").get(pk=sale.item_id)
    expires_ms = int(ticket_end(item=item).timestamp() * 1_000)
    numbers = []
    for buyer in buyers:
        order_no = new_order_number(sale.bucket)
        reply = gate.reserve(
            bucket=sale.bucket,
            order_no=order_no,
            item_id=item.pk,
            buyer_id=buyer,
            limit_key=str(buyer),
            quantity=1,
            price=item.price,
            ticket_expires_ms=expires_ms,
        )
        if reply.code is not ReserveCode.RESERVED:
            raise AssertionError(f"a reservation was answered {reply.code!r}")
        numbers.append(order_no)
    return numbers
