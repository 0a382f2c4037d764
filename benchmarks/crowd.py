"""A crowd that has bought already: reservations in MySQL and members in Redis, written in bulk. Needs Django set up."""

from collections.abc import Iterator
from datetime import UTC, datetime

from django.db import connection, transaction

from seckill.gate.connection import raw_client
from seckill.gate.keys import BucketRef
from seckill.models import Bucket, ItemBucket

CHUNK = 5_000
# Buyers nobody has an account for; reservations want none.
FIRST_BUYER_ID = 1_000_000_000
_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"

INSERT = """
    INSERT INTO seckill_reservation (order_no, pool_id, bucket_no, item_id, buyer_id, limit_key, quantity, unit_price,
        epoch, seq, state, reason, units_owed, owed_at, units_returned_at, created_at)
    VALUES (%s, %s, 0, %s, %s, %s, 1, 1, %s, %s, 'SETTLED', '', 0, NULL, NULL, %s)
"""


def fill(*, bucket: BucketRef, item_id: int, buyers: int) -> Iterator[int]:
    """Let so many buyers have one unit each of a preheated item; yields how many have by now."""
    row = Bucket.objects.get(pool_id=bucket.pool_id, number=bucket.number)
    now = datetime.now(UTC).replace(tzinfo=None)
    for start in range(0, buyers, CHUNK):
        numbers = range(start, min(start + CHUNK, buyers))
        orders = {n: order_number(bucket=bucket, n=n) for n in numbers}
        rows = [
            (orders[n], bucket.pool_id, item_id, FIRST_BUYER_ID + n, str(FIRST_BUYER_ID + n), row.epoch, n + 1, now)
            for n in numbers
        ]
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.executemany(INSERT, rows)
            ItemBucket.objects.filter(item_id=item_id).update(sold=numbers.stop)
        _, _, buyers_key, receipts_key, _ = bucket.keys
        with raw_client().pipeline(transaction=False) as pipe:
            pipe.hset(buyers_key, mapping={str(FIRST_BUYER_ID + n): 1 for n in numbers})
            receipts = {orders[n]: f"confirmed|{item_id}|1|{FIRST_BUYER_ID + n}" for n in numbers}
            pipe.hset(receipts_key, mapping=receipts)
            pipe.execute()
        yield numbers.stop
    stock_key, gate_key, *_ = bucket.keys
    raw_client().hincrby(stock_key, f"{item_id}:left", -buyers)
    raw_client().hset(gate_key, mapping={"seq": buyers, "settled_seq": buyers})


def order_number(*, bucket: BucketRef, n: int) -> str:
    """The n-th order number of the crowd, in the form of a real one."""
    digits = [_ALPHABET[n >> (5 * place) & 31] for place in range(16)]
    return f"{bucket}-".replace(":", "-") + "".join(digits)
