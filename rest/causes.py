"""What caused a piece of work: the id of the request, kept with all the tasks that follow from it."""

from structlog.contextvars import get_contextvars

NAME = "request_id"
HEADER = "cause"


def current_cause() -> str:
    """Return the id of the request this is done for, or "" where it is for none."""
    return str(get_contextvars().get(NAME, ""))


def as_headers(cause: str) -> dict[str, str]:
    """Return the headers by which a task's message carries it."""
    return {HEADER: cause} if cause else {}
