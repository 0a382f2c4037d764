"""Everything the processes count and time themselves, by name. What is read from the stores is in ``config.vitals``.

Names are part of the contract with dashboards and alert rules (``deploy/``). Labels have few values, known beforehand:
never a buyer, an order or a ticket.
"""

from functools import cache

from prometheus_client import Counter, Gauge, Histogram

# From a tenth of a millisecond, which the script takes, to the second where a client gives up.
STAGE_BUCKETS = (0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
WORK_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
WAIT_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 7.5, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0)
ENTRY_BUCKETS = (1, 2, 5, 10, 25, 50, 100, 200, 300, 400, 500)

PURCHASES = Counter("seckill_purchases", "Purchase calls by what was answered", ["outcome"])
STAGE_SECONDS = Histogram(
    "seckill_purchase_stage_seconds",
    "Where a purchase's time goes, of sampled calls; redis contains script, whole contains all",
    ["stage"],
    buckets=STAGE_BUCKETS,
)
REQUESTS = Counter("seckill_http_requests", "Answered requests by route and status", ["route", "method", "status"])
WAKE_UPS = Counter("seckill_wake_ups", "Wake-up calls that the publishing thread tried to send", ["result"])
WAKE_UP_SECONDS = Histogram("seckill_wake_up_seconds", "Time to publish a wake-up call", buckets=STAGE_BUCKETS)

SETTLED = Counter("seckill_settled_entries", "Queue entries decided by settlement", ["fate"])
SETTLE_ENTRIES = Histogram("seckill_settle_batch_entries", "New entries in one settled batch", buckets=ENTRY_BUCKETS)
SETTLE_SECONDS = Histogram(
    "seckill_settle_batch_seconds", "Time of one settled batch, MySQL and Redis", buckets=WORK_BUCKETS
)
SETTLE_LAG = Histogram(
    "seckill_settle_lag_seconds",
    "How long the oldest entry of a batch had waited for MySQL (clocks of Redis and worker apart)",
    buckets=WAIT_BUCKETS,
)
RETURN_SECONDS = Histogram(
    "seckill_return_seconds", "From an order's closing until its units can be bought again", buckets=WAIT_BUCKETS
)
RECONCILIATIONS = Counter("seckill_reconciliations", "Reconciliations of a bucket by verdict", ["verdict"])
INCIDENT_EVENTS = Counter("seckill_incident_events", "Incidents that opened, rose or closed", ["kind", "event"])

TASKS = Counter("seckill_tasks", "Tasks that workers have ended", ["task", "outcome"])
TASK_SECONDS = Histogram("seckill_task_seconds", "Run time of tasks", ["task"], buckets=WORK_BUCKETS)

PROCESSES = Gauge(
    "seckill_processes", "Processes of this host that are alive and count", ["role"], multiprocess_mode="livesum"
)


@cache
def stage_seconds(stage: str) -> Histogram:
    """Return the histogram of one stage; looking it up by name each time costs more than observing."""
    return STAGE_SECONDS.labels(stage)


@cache
def requests(route: str, method: str, status: int) -> Counter:
    """Return the counter of one route's answers; callers name routes, not addresses."""
    return REQUESTS.labels(route, method, str(status))


def begin_process(*, role: str) -> None:
    """Say that this process is alive."""
    PROCESSES.labels(role).set(1)
