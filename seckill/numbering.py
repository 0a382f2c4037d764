"""Who has the next number of a bucket: adjustments by hand and transfers are numbered alike, one at a time."""

from django.db.models import Q

from seckill.change_tables import ItemAdjustment
from seckill.gate.keys import BucketRef
from seckill.transfer_tables import Transfer


def is_free(bucket: BucketRef) -> bool:
    """Tell whether nobody has taken a bucket's next number; its row is locked, so that nobody does meanwhile."""
    key = str(bucket)
    if ItemAdjustment.objects.filter(open_key=key).exists():
        return False
    return not Transfer.objects.filter(Q(donor_key=key) | Q(receiver_key=key)).exists()
