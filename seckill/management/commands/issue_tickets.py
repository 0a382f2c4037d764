"""``manage.py issue_tickets ITEM COUNT``: tickets for load tests, one a line, for buyers made on the spot."""

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import make_password
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from seckill.eligibility import limit_key
from seckill.models import SaleItem, Ticket
from seckill.order_numbers import new_order_number
from seckill.placing import bucket_for
from seckill.tickets import sign_ticket

CHUNK = 1_000


class Command(BaseCommand):
    help = "Write COUNT tickets for an item, each for a buyer of its own, to standard output."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("item_id", type=int)
        parser.add_argument("count", type=int)

    def handle(self, *args: Any, **options: Any) -> None:
        item = SaleItem.objects.select_related("pool__sale").filter(pk=options["item_id"]).first()
        if item is None:
            raise CommandError(f"there is no item {options['item_id']}")
        for start in range(0, options["count"], CHUNK):
            for ticket in _issue(item=item, count=min(CHUNK, options["count"] - start)):
                self.stdout.write(ticket)


def _issue(*, item: SaleItem, count: int) -> list[str]:
    now = timezone.now()
    users = get_user_model()
    last = users.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    password = make_password(None)
    users.objects.bulk_create(users(username=f"load-{last + n + 1}", password=password) for n in range(count))
    buyers = users.objects.filter(pk__gt=last, username__startswith="load-").order_by("pk")
    # New buyers: nobody of them has a ticket whose bucket would be his.
    buckets = item.pool.bucket_count
    tickets = []
    for buyer in buyers:
        key = limit_key(buyer=buyer, item=item)
        order_no = new_order_number(bucket_for(pool_id=item.pool_id, key=key, buckets=buckets))
        tickets.append(
            Ticket(
                order_no=order_no,
                pool_id=item.pool_id,
                item_id=item.pk,
                buyer_id=buyer.pk,
                limit_key=key,
                issued_at=now,
            )
        )
    Ticket.objects.bulk_create(tickets)
    return [sign_ticket(order_no=t.order_no, item=item, buyer_id=t.buyer_id, key=t.limit_key) for t in tickets]
