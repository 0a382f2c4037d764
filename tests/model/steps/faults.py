"""What goes wrong: killed connections, restarts of Redis that forget, deleted keys, hands in Redis."""

from collections.abc import Iterator

from tests.model.state import FREE, NO_RECEIPT, Redis, State
from tests.model.steps.process import Move, Process

# The last id of a queue that is not there; that of a new one is 0.
NO_ID = -1

KEYS = ("stock", "gate", "buyers", "receipts", "queue")


class World(Process):
    """Everything that nobody wants."""

    def moves(self, state: State) -> Iterator[Move]:
        """Yield each fault that may still come."""
        faults = state.faults
        if faults.lost_locks and state.lock != FREE:
            after = state._replace(lock=FREE, faults=faults._replace(lost_locks=faults.lost_locks - 1))
            yield Move(f"the MySQL connection of [{state.lock}] is killed", after, is_by_itself=False)
        if faults.restarts:
            yield from self._persistence(state)
        if faults.deletions:
            rest = state._replace(faults=faults._replace(deletions=faults.deletions - 1), has_forgotten=True)
            for keys in self.model.world.deletable:
                redis = without_keys(state.redis, KEYS if keys == "all" else (keys,))
                yield Move(f"{keys} is deleted", rest._replace(redis=redis), is_by_itself=False)
        if faults.tampers:
            rest = state._replace(faults=faults._replace(tampers=faults.tampers - 1))
            for tamper in self.model.world.tampers:
                yield from _tamper(rest, tamper)

    def _persistence(self, state: State) -> Iterator[Move]:
        """Once, what Redis holds is safe on disk; a restart brings that back, or the beginning."""
        faults = state.faults
        if state.saved is not None and state.saved != state.redis:
            redis = state.saved._replace(server=state.redis.server + 1, is_over=state.redis.is_over)
            after = state._replace(
                redis=redis, saved=None, has_forgotten=True, faults=faults._replace(restarts=faults.restarts - 1)
            )
            yield Move("Redis restarts and has forgotten", after, is_by_itself=False)
            if state.saved.seq == 0:
                yield Move("Redis writes to its disk", state._replace(saved=state.redis), is_by_itself=False)


def without_keys(redis: Redis, keys: tuple[str, ...]) -> Redis:
    """Return Redis with keys deleted: what a script would read of them is nothing."""
    empty: dict[str, object] = {"missing": tuple(key for key in KEYS if key in keys or key in redis.missing)}
    if "gate" in keys:
        empty |= {
            "epoch": 0,
            "run_id": 0,
            "frozen": 0,
            "seq": 0,
            "adj_no": 0,
            "adj_applied": 0,
            "repair_no": 0,
            "is_sealed": False,
        }
    if "stock" in keys:
        empty |= {"left": 0, "queued": 0}
    if "buyers" in keys:
        empty |= {"buyers": tuple(0 for _ in redis.buyers)}
    if "receipts" in keys:
        empty |= {"receipts": tuple(NO_RECEIPT for _ in redis.receipts)}
    if "queue" in keys:
        empty |= {"queue": (), "last_id": NO_ID}
    return redis._replace(**empty)  # type: ignore[arg-type]


def _tamper(state: State, tamper: str) -> Iterator[Move]:
    redis = state.redis
    if redis.missing or redis.run_id != redis.server:
        return
    if tamper == "a hand raises left":
        yield Move(tamper, state._replace(redis=redis._replace(left=redis.left + 1)), is_by_itself=False)
    elif tamper == "a hand lowers left" and redis.left:
        yield Move(tamper, state._replace(redis=redis._replace(left=redis.left - 1)), is_by_itself=False)
    elif tamper == "a hand deletes the buyers' marks" and any(redis.buyers):
        buyers = tuple(0 for _ in redis.buyers)
        yield Move(tamper, state._replace(redis=redis._replace(buyers=buyers)), is_by_itself=False)
