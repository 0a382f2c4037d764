"""A rush through HTTP on the running shop, with the broker stopped, the worker killed, or Redis restarted."""

from statistics import quantiles

import pytest
from django.db import transaction
from django.utils import timezone

from benchmarks.servers import PrivateServers
from benchmarks.shop import Shop as ShopProcesses
from orders.models import Order
from seckill.gate import gate
from seckill.order_numbers import bucket_of
from seckill.outcomes import lock_bucket
from seckill.reconciliation import Verdict, reconcile_bucket
from seckill.tickets import read_ticket
from tests.support.broker import is_broker_up
from tests.support.locks import is_bucket_lock_wanted
from tests.support.shop import Shop, make_ticket, make_tickets, open_sale
from tests.support.state import assert_settled_state, numbers
from tests.support.threads import run_together
from tests.support.web import Browser, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("all_running")]

BROWSERS = 16
RUSH = 320


def rush(running: ShopProcesses, tickets: list[str]) -> tuple[list[str], list[float]]:
    """Buy with all tickets from a few connections at once; return the answers and the seconds of each call."""

    def buy_all(share: list[str]) -> tuple[list[str], list[float]]:
        browser = Browser(port=running.web.port)
        answers = [browser.buy(ticket) for ticket in share]
        browser.close()
        return answers, browser.seconds

    results = run_together(buy_all, [tickets[n::BROWSERS] for n in range(BROWSERS)])
    answers = {t: a for n, (shares, _) in enumerate(results) for t, a in zip(tickets[n::BROWSERS], shares, strict=True)}
    return [answers[ticket] for ticket in tickets], [s for _, seconds in results for s in seconds]


def p99(seconds: list[float]) -> float:
    return quantiles(seconds, n=100)[98]


def wait_for_orders(number: int, *, seconds: float) -> float:
    return wait_until(lambda: Order.objects.count() == number, seconds=seconds)


def wait_until_quiet(shop: Shop) -> None:
    wait_until(lambda: numbers(shop).queue_length == 0, seconds=10)


def test_a_rush_ends_in_orders(running: ShopProcesses) -> None:
    """320 buyers for 100 units: 100 orders, 220 told so, everybody's poll ends, law 7 holds."""
    shop = open_sale(units=100)
    tickets = make_tickets(shop, RUSH)
    answers, _ = rush(running, tickets)
    orders = [(ticket, answer) for ticket, answer in zip(tickets, answers, strict=True) if "-" in answer]
    assert len(orders) == 100
    assert {answer for answer in answers if "-" not in answer} == {"sold_out"}
    wait_for_orders(100, seconds=10)
    wait_until_quiet(shop)
    browser = Browser(port=running.web.port)
    polls = [browser.poll(ticket, order_no) for ticket, order_no in orders]
    assert {poll["state"] for poll in polls} == {"confirmed"}
    assert {poll["order"]["state"] for poll in polls} == {"PENDING_PAYMENT"}
    loser = next(ticket for ticket, answer in zip(tickets, answers, strict=True) if "-" not in answer)
    assert browser.poll(loser, read_ticket(loser).order_no)["state"] == "not_reserved"
    browser.close()
    assert_settled_state(shop, sold=100)
    assert reconcile_bucket(bucket=shop.bucket, clock=timezone.now).verdict is Verdict.BALANCED


def test_a_stopped_broker_delays_no_purchase(running: ShopProcesses, servers: PrivateServers) -> None:
    """Law 9: latency stays below three times the normal one, and all orders appear once the broker is back."""
    shop = open_sale(units=3 * RUSH)
    tickets = make_tickets(shop, 3 * RUSH)
    rush(running, tickets[:RUSH])
    _, normal = rush(running, tickets[RUSH : 2 * RUSH])
    servers.cache_redis.stop()
    try:
        answers, broken = rush(running, tickets[2 * RUSH :])
    finally:
        servers.cache_redis.start()
    assert all("-" in answer for answer in answers)
    assert p99(broken) < 3 * p99(normal)
    wait_for_orders(3 * RUSH, seconds=30)
    wait_until_quiet(shop)
    assert_settled_state(shop, sold=3 * RUSH)


def test_a_broker_restarted_in_the_middle_of_tasks_ends_no_worker(
    running: ShopProcesses, servers: PrivateServers
) -> None:
    """CASES 27: three restarts in three seconds, while tasks are under way; the same worker finishes the work."""
    shop = open_sale(units=RUSH)
    tickets = make_tickets(shop, RUSH)
    with transaction.atomic():
        lock_bucket(shop.bucket)
        rush(running, tickets[: RUSH // 2])
        wait_until(is_bucket_lock_wanted, seconds=10)
        for _ in range(3):
            servers.cache_redis.restart()
            wait_until(is_broker_up, seconds=5)
    rush(running, tickets[RUSH // 2 :])
    wait_for_orders(RUSH, seconds=20)
    wait_until_quiet(shop)
    running.require_running()
    assert_settled_state(shop, sold=RUSH)


def test_a_purchase_whose_publisher_crashed_is_an_order_within_two_seconds(running: ShopProcesses) -> None:
    """The script ran, then the process died before it could publish: beat's sweep finds the entry."""
    shop = open_sale()
    seconds = []
    for _ in range(3):
        claims = read_ticket(make_ticket(shop))
        gate.reserve(
            bucket=bucket_of(claims.order_no),
            order_no=claims.order_no,
            item_id=claims.item_id,
            buyer_id=claims.buyer_id,
            limit_key=claims.limit_key,
            quantity=1,
            price=claims.price,
            ticket_expires_ms=claims.expires_ms,
        )
        seconds.append(wait_until(Order.objects.filter(number=claims.order_no).exists, seconds=5))
    assert max(seconds) <= 2
    wait_until_quiet(shop)
    assert_settled_state(shop, sold=3)


def test_a_worker_killed_in_the_rush_loses_nothing(running: ShopProcesses) -> None:
    """CASES 26: SIGKILL in the middle; a new worker finishes what the old one began."""
    shop = open_sale(units=RUSH)
    tickets = make_tickets(shop, RUSH)
    rush(running, tickets[: RUSH // 2])
    running.worker.kill()
    answers, _ = rush(running, tickets[RUSH // 2 :])
    assert all("-" in answer for answer in answers)
    running.worker.start()
    wait_for_orders(RUSH, seconds=20)
    wait_until_quiet(shop)
    assert_settled_state(shop, sold=RUSH)


def test_a_restarted_redis_opens_again_by_itself(running: ShopProcesses, servers: PrivateServers) -> None:
    """Law 8: refused until checked; the sweep rebuilds; buyers who repeat with their ticket end well."""
    shop = open_sale(units=RUSH)
    tickets = make_tickets(shop, RUSH)
    first, _ = rush(running, tickets[: RUSH // 2])
    servers.stock_redis.kill()
    servers.stock_redis.start()
    browser = Browser(port=running.web.port)
    assert browser.purchase(tickets[-1])[0] == 503
    seconds = wait_until(lambda: browser.purchase(tickets[-1])[0] == 202, seconds=10)
    browser.close()
    answers, _ = rush(running, tickets)
    assert answers[: RUSH // 2] == first
    wait_for_orders(RUSH, seconds=20)
    wait_until_quiet(shop)
    assert_settled_state(shop, sold=RUSH)
    assert seconds <= 5
