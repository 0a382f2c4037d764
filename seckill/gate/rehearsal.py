"""A rehearsal of a purchase: is there a Redis that would run the script."""

from redis.exceptions import RedisError

from seckill.errors import GateUnavailable, NotPreheated
from seckill.gate import gate
from seckill.gate.nodes import a_bucket_of_each_node

# Primary keys begin at 1.
NOBODYS_POOL = 0


def rehearse() -> None:
    """Go the way of a purchase, run id, connection and script, but read-only and for a bucket that nobody has.

    A cluster is there when one of its nodes is, whose buckets can be sold. Raises ``GateUnavailable``.
    """
    failed: GateUnavailable | None = None
    try:
        buckets = a_bucket_of_each_node(NOBODYS_POOL)
    except RedisError as error:
        raise GateUnavailable(str(error)) from error
    for bucket in buckets:
        try:
            gate.look_up(bucket=bucket, order_no="")
        except NotPreheated:
            return
        except GateUnavailable as error:
            failed = error
    raise failed or GateUnavailable("no node serves anything")
