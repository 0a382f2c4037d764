"""What holds for every task: its lines carry its id and that of the request it follows from, and it is counted."""

from contextvars import ContextVar
from time import perf_counter
from typing import Any

from celery import Task
from celery.signals import (
    beat_init,
    before_task_publish,
    task_postrun,
    task_prerun,
    worker_process_init,
    worker_ready,
)
from structlog.contextvars import bind_contextvars, clear_contextvars

from metrics.definitions import TASK_SECONDS, TASKS, begin_process
from rest.causes import HEADER, NAME, as_headers, current_cause

_began: ContextVar[float] = ContextVar("task_began", default=0.0)


@before_task_publish.connect
def name_cause(headers: dict[str, Any], **_kwargs: Any) -> None:
    """Send the id of the request along."""
    for name, value in as_headers(current_cause()).items():
        headers.setdefault(name, value)


@task_prerun.connect
def begin_task(task_id: str, task: Task[Any, Any], **_kwargs: Any) -> None:
    """Put the ids on every line the task logs."""
    clear_contextvars()
    bind_contextvars(task_id=task_id, task=task.name)
    if cause := getattr(task.request, HEADER, None):
        bind_contextvars(**{NAME: str(cause)})
    _began.set(perf_counter())


@task_postrun.connect
def end_task(task: Task[Any, Any], state: str | None = None, **_kwargs: Any) -> None:
    """Count it, and take the ids off again."""
    TASKS.labels(task.name, (state or "unknown").lower()).inc()
    TASK_SECONDS.labels(task.name).observe(perf_counter() - _began.get())
    clear_contextvars()


@worker_process_init.connect
def begin_worker(**_kwargs: Any) -> None:
    """Say that a process of the pool is there."""
    begin_process(role="worker")


@beat_init.connect
def begin_beat(**_kwargs: Any) -> None:
    """Say that beat is there."""
    begin_process(role="beat")


@worker_ready.connect
def answer_scrapes(**_kwargs: Any) -> None:
    """Answer ``/metrics`` on a port of the worker's own, where the settings want it."""
    from config.worker_metrics import serve_if_wanted

    serve_if_wanted()
