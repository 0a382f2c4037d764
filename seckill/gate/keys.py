"""Names of a bucket's keys; one hash tag puts them all into one cluster slot."""

from dataclasses import dataclass
from functools import cached_property, lru_cache

PARTS = ("stock", "gate", "buyers", "receipts", "queue")


@dataclass(frozen=True, kw_only=True)
class BucketRef:
    """A bucket: a pool's primary key and the number of the shard."""

    pool_id: int
    number: int

    def __str__(self) -> str:
        return f"{self.pool_id}:{self.number}"

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The five live keys, in the order every script declares them."""
        return self._named("")

    def staging_keys(self, token: str) -> tuple[str, ...]:
        """The five keys a rebuild fills; ``token`` keeps two rebuilds apart."""
        return self._named(f"staging:{token}:")

    def trash_keys(self, token: str) -> tuple[str, ...]:
        """Where a swap puts the old keys until they are unlinked."""
        return self._named(f"trash:{token}:")

    def _named(self, prefix: str) -> tuple[str, ...]:
        return tuple(f"seckill:{{{self.pool_id}:{self.number}}}:{prefix}{part}" for part in PARTS)


@lru_cache(maxsize=4_096)
def bucket_ref(pool_id: int, number: int) -> BucketRef:
    """Return the bucket, the same object each time: it knows its keys already."""
    return BucketRef(pool_id=pool_id, number=number)
