"""The audit of one SKU: its units in each sale, as stored and as the ledger adds up."""

from dataclasses import dataclass

from inventory.selectors import balances
from seckill.gate.keys import BucketRef
from seckill.models import ItemBucket, SaleItem
from seckill.outcomes import account_of

ITEMS_SHOWN_MAX = 50


@dataclass(frozen=True, kw_only=True)
class ItemBooks:
    """An item of the SKU: what MySQL has of it over all buckets, and the ledger's balance of its accounts."""

    item: SaleItem
    allocated: int
    sold: int
    ledger: int

    @property
    def unsold(self) -> int:
        """Units that the ledger ought to have on the item's accounts."""
        return self.allocated - self.sold

    @property
    def is_right(self) -> bool:
        """Whether it has them."""
        return self.unsold == self.ledger


def items_of_sku(*, sku_id: int) -> list[ItemBooks]:
    """The SKU's items, the newest first; a bounded number, in three statements."""
    items = list(SaleItem.objects.filter(sku_id=sku_id).select_related("pool__sale").order_by("-pk")[:ITEMS_SHOWN_MAX])
    names = ("item_id", "bucket__pool_id", "bucket__number", "allocated", "sold")
    units = list(ItemBucket.objects.filter(item__in=items).values_list(*names))
    accounts = {
        account_of(item_id=item_id, bucket=BucketRef(pool_id=pool_id, number=number)): item_id
        for item_id, pool_id, number, *_ in units
    }
    ledger: dict[int, int] = {}
    for account, balance in balances(accounts=list(accounts)).items() if accounts else ():
        ledger[accounts[account]] = ledger.get(accounts[account], 0) + balance
    return [
        ItemBooks(
            item=item,
            allocated=sum(allocated for item_id, _, _, allocated, _ in units if item_id == item.pk),
            sold=sum(sold for item_id, *_, sold in units if item_id == item.pk),
            ledger=ledger.get(item.pk, 0),
        )
        for item in items
    ]
