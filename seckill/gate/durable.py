"""Durable mode: nobody is told of a reservation before as many replicas have it as the settings ask for.

That the server's own disk has it is the server's own setting: with ``appendfsync always`` Redis answers nobody before
its file is synced. An answer held back for a replica takes a WAIT, after the script and on the same connection. Not
WAITAOF: a replica tells what is on its disk once a second, too late for a buyer.

Note [What WAIT waits for]
~~~~~~~~~~~~~~~~~~~~~~~~~~
It waits for the last write of the very connection that asks. One that has written nothing is answered at once that all
replicas have it; from Redis 7.2 on also one whose last script has only read. A repeat does just that: it reads the
receipt of a reservation that another connection made, and that no replica may have. So it first writes a field as it
stands, which comes after that reservation in the stream that replicas read. For the same reason a connection that was
lost meanwhile is not made anew: the new one would be told what it wants to hear.
"""

from django.conf import settings

from seckill.errors import GateUnavailable
from seckill.gate import gate
from seckill.gate.connection import Script, on_the_same_connection
from seckill.gate.keys import BucketRef
from seckill.gate.receipts import Receipt, ReceiptState

_stir = Script("stir")


def receipt_to_tell(*, bucket: BucketRef, order_no: str) -> Receipt | None:
    """The receipt of an order number, which its buyer may be told; else as ``gate.look_up``, and as below.

    Of what is not queued any more MySQL has the row.
    """
    receipt = gate.look_up(bucket=bucket, order_no=order_no)
    if receipt is not None and receipt.state is ReceiptState.QUEUED:
        await_replicas(bucket=bucket, has_written=False)
    return receipt


def await_replicas(*, bucket: BucketRef, has_written: bool) -> None:
    """Return once the replicas that the settings ask for have all that was written to the bucket up to now.

    ``has_written`` says that this thread's last call has. Raises ``GateUnavailable`` when time is up: the reservation
    stands, unless the server is lost before they have it, and to repeat is to learn which.
    """
    wanted: int = settings.DURABLE_REPLICAS
    if not wanted:
        return
    if not has_written and _stir(bucket.keys)[0] != 1:
        raise GateUnavailable("the bucket is damaged, or the server was restarted since it was checked")
    have = int(on_the_same_connection("WAIT", wanted, settings.DURABLE_WAIT_MS))
    if have < wanted:
        raise GateUnavailable(f"{have} of {wanted} replicas have it after {settings.DURABLE_WAIT_MS} ms")
