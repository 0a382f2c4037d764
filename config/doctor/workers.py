"""Beat and the workers: does somebody send the periodic tasks, and is there somebody for every queue."""

from collections.abc import Iterator, Mapping
from typing import Any

from celery import current_app
from django.utils import timezone

from config.dependencies import broker_connection
from config.doctor.database import connections_needed
from config.doctor.findings import Finding, fail, judge, ok, warn
from config.schedule import scheduled_tasks

INSPECT_SECONDS = 1.0
# Beat writes down what it sent every ten seconds, but at night, with little to send, every three minutes.
LATE_SECONDS = 240.0
BACKLOG_WARN = 1_000
# Without these a sale does not end well.
NEEDED = frozenset(
    {
        "seckill.sweep",
        "seckill.return_closed",
        "seckill.reconcile",
        "seckill.preheat_due",
        "seckill.archive_due",
        "seckill.deliver_alerts",
        "orders.expire",
    }
)


def examine_beat() -> Iterator[Finding]:
    """When the periodic tasks were last sent."""
    tasks = {task.task: task for task in scheduled_tasks(now=timezone.now())}
    missing = sorted(NEEDED - tasks.keys())
    if missing:
        what = f"Not on the schedule, or switched off: {', '.join(missing)}."
        yield fail("beat", what, "Switch them on under Periodic tasks in the admin; a migration has made them.")
    advice = "Start one: celery -A config beat. If it runs, look into its log."
    late = [task for task in tasks.values() if task.age_seconds > LATE_SECONDS + 2 * task.interval_seconds]
    if tasks and not any(task.was_sent for task in tasks.values()):
        yield fail("beat", "Beat has never sent a task.", advice)
    elif late:
        longest = max(task.age_seconds for task in late)
        names = ", ".join(task.task for task in late[:4])
        yield fail("beat", f"For up to {longest:,.0f} s beat has not sent {names}.", advice)
    elif tasks:
        yield ok("beat", f"all {len(tasks)} periodic tasks are being sent")


def examine_workers(*, web_threads: int) -> Iterator[Finding]:
    """Who listens to which queue, with which code, and whether messages pile up."""
    with broker_connection() as broker:
        inspect = current_app.control.inspect(timeout=INSPECT_SECONDS, connection=broker)
        queues: Mapping[str, Any] = inspect.active_queues() or {}
        registered: Mapping[str, Any] = (inspect.registered() or {}) if queues else {}
        stats: Mapping[str, Any] = (inspect.stats() or {}) if queues else {}
        yield from _backlog(broker)
    yield from _listeners(queues)
    yield from _code(registered)
    processes = sum(int(told.get("pool", {}).get("max-concurrency", 1)) for told in stats.values())
    if web_threads:
        yield connections_needed(web_threads=web_threads, worker_processes=processes)


def _listeners(queues: Mapping[str, Any]) -> Iterator[Finding]:
    wanted = [queue.name for queue in current_app.conf.task_queues]
    served = {queue["name"] for listened in queues.values() for queue in listened}
    missing = [name for name in wanted if name not in served]
    yield judge(
        topic="workers",
        is_well=not missing,
        what=f"{len(queues)} workers listen to {', '.join(wanted)}",
        else_what=f"No worker answers for {', '.join(missing)}.",
        advice=f"celery -A config worker -Q {','.join(missing)}",
    )


def _code(registered: Mapping[str, Any]) -> Iterator[Finding]:
    own = {name for name in current_app.tasks if not name.startswith("celery.")}
    for worker, told in sorted(registered.items()):
        if unknown := sorted(own - {str(name).partition(" ")[0] for name in told}):
            what = f"{worker} does not know {', '.join(unknown[:4])}: it runs older code."
            yield warn("workers", what, "Restart it with this release.")


def _backlog(broker: Any) -> Iterator[Finding]:
    channel = broker.default_channel
    waiting = {queue.name: queue(channel).queue_declare().message_count for queue in current_app.conf.task_queues}
    long = {name: number for name, number in waiting.items() if number > BACKLOG_WARN}
    if long:
        what = f"Messages pile up: {', '.join(f'{name} {number:,}' for name, number in long.items())}."
        yield warn("workers", what, "Start more workers for them, and look at what the busy ones do.")
