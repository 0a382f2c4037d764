"""The domain's numbers, each with its unit and its reason, in one checked object."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Bounds of the flash sales; a limit on everything."""

    # Entries settled by one transaction: about 50 ms of MySQL and 2 ms of Redis.
    batch_size: int = 500
    # Batches one settle task writes before it lets another bucket have the worker.
    batches_per_task_max: int = 200
    # A ticket outlives its sale by this, so that a late repeat still finds its answer.
    ticket_grace_seconds: int = 600
    # What a buyer waits before the first poll; settlement usually takes less.
    poll_after_ms: int = 500
    # A publisher that hangs is given up after this; the sweep does its work meanwhile.
    publish_timeout_seconds: float = 1.0
    # A rebuild renews its claim with each chunk; a dead one is taken over after this.
    claim_seconds: int = 30
    # Members written to Redis by one command during a rebuild.
    chunk_size: int = 500
    # Members an archive reads from Redis by one call: 0.1 ms, where 500 would keep the buyers of other items waiting.
    archive_piece_size: int = 50
    # What one tick of the archive works before it lets the slow queue's other tasks have the worker.
    archive_slice_seconds: int = 40
    # A buyer has one ticket per item and one per purchase; more than these are not looked through.
    tickets_looked_at_max: int = 20
    # Marks and receipts compared by one look under the bucket's lock: a millisecond of Redis.
    members_per_look: int = 400
    # Looks of one reconciliation: a round over 100,000 buyers takes less than an hour, one run less than a second.
    looks_per_run: int = 10
    # Units one buyer may ask for in one purchase, whatever the pool's limit.
    quantity_max: int = 1_000

    # A challenge takes half as many hashes on average: about 0.5 s on a slow phone, where the limit is 2 s.
    challenge_number_max: int = 25_000
    # A challenge may be solved long before the sale opens.
    challenge_lifetime_seconds: int = 3_600
    # Who cannot compute waits so long instead: a price for bots too, if of another kind.
    challenge_wait_seconds: int = 45

    def __post_init__(self) -> None:
        """Refuse values that cannot work."""
        for name, value in vars(self).items():
            if value <= 0:
                raise ValueError(f"{name} must be positive, not {value}")


LIMITS = Limits()
