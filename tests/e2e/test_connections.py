"""The running shop with its connections to MySQL killed, and with messages in its queues that no worker can do."""

import uuid

import pytest
from celery import current_app
from django.db import connection

from benchmarks.shop import Shop as ShopProcesses
from orders.models import Order
from seckill.models import DeadLetter, Incident
from seckill.tickets import read_ticket
from tests.support.shop import Shop, make_tickets, open_sale
from tests.support.state import assert_settled_state, numbers
from tests.support.threads import kill_connection
from tests.support.web import Browser, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("all_running")]

POISON = 20


def buy_and_wait(running: ShopProcesses, shop: Shop, tickets: list[str], *, orders: int) -> None:
    """Buy with the tickets through HTTP; return when MySQL has so many orders and the queue is empty."""
    browser = Browser(port=running.web.port)
    assert all("-" in browser.buy(ticket) for ticket in tickets)
    wait_until(lambda: Order.objects.count() == orders, seconds=15)
    wait_until(lambda: numbers(shop).queue_length == 0, seconds=10)
    for ticket in tickets:
        assert browser.poll(ticket, read_ticket(ticket).order_no)["state"] == "confirmed"
    browser.close()


def kill_all_connections() -> int:
    """End every session of MySQL but this one, as a restarted proxy in front of it would; return how many."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND user = 'seckill'")
        sessions = [session for (session,) in cursor.fetchall()]
    for session in sessions:
        kill_connection(session)
    return len(sessions)


def test_all_connections_killed_between_two_tasks(running: ShopProcesses) -> None:
    """CASES 31: the next task works, or the sweep's next one does; no half effect, no incident, no 500."""
    shop = open_sale(units=9)
    tickets = make_tickets(shop, 9)
    buy_and_wait(running, shop, tickets[:3], orders=3)
    for done in (3, 6):
        assert kill_all_connections() > 0
        buy_and_wait(running, shop, tickets[done : done + 3], orders=done + 3)
    running.require_running()
    assert_settled_state(shop, sold=9)
    assert not Incident.objects.exists()


def test_messages_that_no_worker_can_do_stop_nobody(running: ShopProcesses) -> None:
    """CASES 26: unknown tasks, wrong arguments, a bucket that is not there, a body nobody may unpickle."""
    shop = open_sale(units=5)
    for queue in ("settle", "sweep", "slow"):
        for _ in range(POISON):
            current_app.send_task("seckill.never_heard_of", (1,), queue=queue)
            current_app.send_task("seckill.settle", ("x", {}, 3), queue=queue)
            current_app.send_task("seckill.settle", (10**9, 0), queue=queue)
            current_app.send_task("seckill.settle", (1, 0), queue=queue, serializer="pickle")
            current_app.send_task("seckill.settle", (str(uuid.uuid4()), None), queue=queue)
    buy_and_wait(running, shop, make_tickets(shop, 5), orders=5)
    running.require_running()
    assert_settled_state(shop, sold=5)
    assert not DeadLetter.objects.exists()
