"""The set "outcomes": an item, or a ready ticket, for every answer a purchase can have.

Each is really in the state it shows. Two of them (``refused:phantom``, ``refused:limit_reached``) are faults that the
reconciliation of every minute mends; whoever wants to see them makes the set and tries them at once.
"""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from django.contrib.auth.models import AbstractBaseUser

from orders.services import cancel_order
from seckill.eligibility import limit_key
from seckill.gate.sandbox import close_queue, forget_buyer, invent_unit
from seckill.gate.staging import freeze
from seckill.models import Bucket, FlashSale, SaleItem
from seckill.order_numbers import new_order_number
from seckill.pausing import pause_item
from seckill.returns import return_closed_orders
from seckill.sandbox.stage import (
    LONG,
    PRICE,
    Clock,
    Prop,
    bucket_of_item,
    buy,
    make_sale,
    open_sale,
    sell_to_rival,
    ticket_of,
)
from seckill.states import SaleState
from seckill.tickets import sign_ticket

# No account has this number: the largest that the column holds.
NOBODY = 2**31 - 1
ENDS_IN = timedelta(seconds=2)
BUY_ONE = "take a ticket, buy one"
SEND = "buy one with this ticket"

# What the provider does when the amount ends in these cents, and the name of the item at such a price.
PAYMENTS = {
    1: ("late", "the shop hears of it 20 s later"),
    2: ("told_twice", "the shop is told twice"),
    3: ("told_out_of_order", "the shop is told in the wrong order"),
    4: ("never_told", "the shop is never told, and asks before it lets the order expire"),
    5: ("twice", "the money is taken twice; one is due back"),
    6: ("too_little", "one cent too little is taken; it is due back"),
}


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One answer and how to get it. ``ticket`` is there where the ticket endpoint would not give such a one."""

    code: str
    item_id: int
    how: str
    ticket: str = ""
    order_no: str = ""


def make_outcomes(*, buyer: AbstractBaseUser, clock: Clock) -> list[Outcome]:
    """Bring items into all states, with tickets for one buyer where an outcome needs a special one."""
    return [
        *_open_items(clock),
        *_shut_items(clock),
        *_special_tickets(buyer, clock),
        *_ends(buyer, clock),
        *_faults(buyer, clock),
        *_payments(clock),
    ]


def _open_items(clock: Clock) -> Iterator[Outcome]:
    """Items that answer by what was sold of them."""
    items = open_sale(
        name="sold",
        props=[
            Prop(name="confirmed", limit=2),
            Prop(name="limit_reached"),
            Prop(name="sold_out", units=1),
            Prop(name="taken_unpaid", units=1),
            Prop(name="not_enough_left", units=3, limit=3),
            Prop(name="ticket_denied"),
        ],
        clock=clock,
    )
    sell_to_rival(item=items["sold_out"], quantity=1, is_paid=True, clock=clock)
    sell_to_rival(item=items["taken_unpaid"], quantity=1, is_paid=False, clock=clock)
    sell_to_rival(item=items["not_enough_left"], quantity=2, is_paid=True, clock=clock)
    yield _at("confirmed", items["confirmed"], BUY_ONE)
    yield _at("conflict", items["confirmed"], "buy one, then send the same ticket with quantity 2")
    yield _at("bad_request", items["confirmed"], "send quantity 0")
    yield _at("limit_reached", items["limit_reached"], "ask for 2; or buy one, then ask for another ticket")
    yield _at("sold_out", items["sold_out"], BUY_ONE)
    yield _at("sold_out", items["taken_unpaid"], f"{BUY_ONE}; the sale says until when it may come back")
    yield _at("not_enough_left", items["not_enough_left"], "ask for 2; one is left")
    yield _at("ticket_denied", items["ticket_denied"], "ask for a ticket")


def _shut_items(clock: Clock) -> Iterator[Outcome]:
    """Items that nobody can buy now."""
    shut = open_sale(name="shut", props=[Prop(name="paused"), Prop(name="busy"), Prop(name="unavailable")], clock=clock)
    pause_item(item_id=shut["paused"].pk)
    close_queue(bucket_of_item(shut["busy"]))
    _freeze_for_long(shut["unavailable"], clock)
    early = open_sale(name="to come", props=[Prop(name="not_started")], clock=clock, opens_in=LONG / 2, closes_in=LONG)
    scheduled = make_sale(
        name="far away", props=[Prop(name="not_preheated")], clock=clock, opens_in=LONG / 2, closes_in=LONG
    )
    FlashSale.objects.filter(pools=scheduled["not_preheated"].pool_id).update(state=SaleState.SCHEDULED)
    over = open_sale(name="over", props=[Prop(name="ended")], clock=clock, closes_in=ENDS_IN)
    yield _at("paused", shut["paused"], BUY_ONE)
    yield _at("busy", shut["busy"], BUY_ONE)
    yield _at("unavailable", shut["unavailable"], f"{BUY_ONE}; a poll says unknown")
    yield _at("not_started", early["not_started"], BUY_ONE)
    yield _at("not_preheated", scheduled["not_preheated"], "ask for a ticket")
    yield _at("ended", over["ended"], f"ask for a ticket, {ENDS_IN.seconds} s from now or later")


def _special_tickets(buyer: AbstractBaseUser, clock: Clock) -> Iterator[Outcome]:
    """Tickets as they are after something changed behind the buyer's back."""
    item = open_sale(name="tickets", props=[Prop(name="special_ticket", limit=99)], clock=clock)["special_ticket"]
    good, order_no = ticket_of(item=item, buyer_id=buyer.pk, clock=clock)
    yield _at("not_reserved", item, "poll before buying", ticket=good, order_no=order_no)
    yield _at("ticket_invalid", item, SEND, ticket=f"{good[:-1]}{'A' if good[-1] != 'A' else 'B'}")
    closes_at, price = item.pool.sale.closes_at, item.price
    item.pool.sale.closes_at = clock() - timedelta(days=1)
    expired, _ = ticket_of(item=item, buyer_id=buyer.pk, clock=clock)
    item.pool.sale.closes_at, item.price = closes_at, price + 1
    changed, _ = ticket_of(item=item, buyer_id=buyer.pk, clock=clock)
    yield _at("ticket_expired", item, SEND, ticket=expired)
    yield _at("price_changed", item, SEND, ticket=changed)


def _ends(buyer: AbstractBaseUser, clock: Clock) -> Iterator[Outcome]:
    """How a reservation can end that was confirmed."""
    items = open_sale(
        name="ends", props=[Prop(name="returned"), Prop(name="expires")], clock=clock, pay_window_minutes=1
    )
    ticket, order_no = buy(item=items["returned"], buyer_id=buyer.pk, quantity=1, clock=clock)
    cancel_order(number=order_no, buyer_id=buyer.pk, now=clock())
    return_closed_orders(clock=clock)
    yield _at("returned", items["returned"], "poll", ticket=ticket, order_no=order_no)
    yield _at("returned", items["expires"], f"{BUY_ONE} and do not pay for a minute")


def _faults(buyer: AbstractBaseUser, clock: Clock) -> Iterator[Outcome]:
    """What MySQL refuses although Redis has accepted it."""
    items = open_sale(
        name="faults",
        props=[Prop(name="invalid"), Prop(name="phantom", units=1), Prop(name="limit_in_mysql")],
        clock=clock,
    )
    invalid = items["invalid"]
    number = new_order_number(bucket_of_item(invalid))
    nobodys = sign_ticket(order_no=number, item=invalid, buyer_id=NOBODY, key=str(NOBODY))
    yield _at("refused:invalid", invalid, f"{SEND}, poll with it", ticket=nobodys, order_no=number)
    limited = items["limit_in_mysql"]
    buy(item=limited, buyer_id=buyer.pk, quantity=1, clock=clock)
    again, order_no = ticket_of(item=limited, buyer_id=buyer.pk, clock=clock)
    forget_buyer(bucket_of_item(limited), limit_key=limit_key(buyer=buyer, item=limited))
    yield _at("refused:limit_reached", limited, f"within a minute: {SEND}, poll", ticket=again, order_no=order_no)
    sell_to_rival(item=items["phantom"], quantity=1, is_paid=True, clock=clock)
    invent_unit(bucket_of_item(items["phantom"]), item_id=items["phantom"].pk)
    yield _at("refused:phantom", items["phantom"], f"within a minute: {BUY_ONE}, poll")


def _payments(clock: Clock) -> Iterator[Outcome]:
    """Items by whose cents the sandbox's payment provider knows how to behave."""
    props = {
        cents: Prop(name=f"pays_{name}", price=PRICE + Decimal(cents) / 100) for cents, (name, _) in PAYMENTS.items()
    }
    items = open_sale(name="payments", props=list(props.values()), clock=clock)
    for cents, (_, what) in PAYMENTS.items():
        yield _at("confirmed", items[props[cents].name], f"{BUY_ONE}, pay: {what}")


def _freeze_for_long(item: SaleItem, clock: Clock) -> None:
    """Shut a gate as a rebuild does, with a claim that outlives the sale, so that no sweep opens it."""
    token = f"sandbox-{secrets.token_hex(8)}"
    Bucket.objects.filter(pool_id=item.pool_id).update(claim=token, claim_until=clock() + 2 * LONG)
    freeze(bucket=bucket_of_item(item), token=token)


def _at(code: str, item: SaleItem, how: str, *, ticket: str = "", order_no: str = "") -> Outcome:
    return Outcome(code=code, item_id=item.pk, how=how, ticket=ticket, order_no=order_no)
