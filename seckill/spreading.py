"""Spreading a pool over buckets: how many it ought to have, and how many units each of them gets.

A bucket is a place of its own in Redis, with a queue and a settle worker of its own, so several of them spread a hot
pool over nodes. Each costs the last units of a sale some way: a unit that is left in another bucket has to be brought.
"""

# More than a sale needs on any cluster that we have measured; each bucket is one more key to look at for the sweep.
BUCKETS_MAX = 64
# One bucket sells about ten thousand units a second: fewer are gone before a second bucket has saved a second.
UNITS_PER_BUCKET = 10_000
PROPOSED_MAX = 16


def proposed_buckets(*, units: int) -> int:
    """How many buckets to propose for a pool of so many units: one per 10,000, one at least, sixteen at most."""
    return min(PROPOSED_MAX, max(1, units // UNITS_PER_BUCKET))


def shares(*, units: int, buckets: int) -> list[int]:
    """Units per bucket, as even as can be; the first ones get what does not divide."""
    each, rest = divmod(units, buckets)
    return [each + (number < rest) for number in range(buckets)]
