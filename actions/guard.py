"""Makes the database itself refuse to change or delete rows of the action log, by two triggers.

What is missing is created after each ``migrate``. It takes the right TRIGGER and no more, but on a server that writes a
binary log (MySQL 8 does by default) also SUPER, or ``log_bin_trust_function_creators=1``: where neither is given,
migrate goes on and says so, and the model alone refuses. TRUNCATE and DROP pass triggers by; who holds the right to
them holds the database.
"""

import logging
from typing import Any

from django.db import OperationalError, connections

from actions.models import NOBODY_CHANGES, ActionEntry

logger = logging.getLogger(__name__)

TABLE = ActionEntry._meta.db_table  # noqa: SLF001  Django's documented way to the name
TRIGGERS = {f"{TABLE}_no_{verb.lower()}": verb for verb in ("UPDATE", "DELETE")}
# Not allowed to create triggers; not allowed while a binary log is written; not allowed without SUPER.
MAY_NOT = frozenset({1142, 1227, 1419})


def guard_after_migrate(*, using: str, **_: Any) -> None:
    """Create the triggers that are missing, if the table is there and the server lets us."""
    if TABLE not in connections[using].introspection.table_names():
        return
    try:
        guard(using=using)
    except OperationalError as error:
        if error.args[0] not in MAY_NOT:
            raise
        logger.warning("the action log is guarded by the application alone: %s; see docs/design.md", error)


def guard(*, using: str = "default") -> None:
    """Create the triggers that are missing."""
    for name in missing(using=using):
        with connections[using].cursor() as cursor:
            cursor.execute(
                f"CREATE TRIGGER `{name}` BEFORE {TRIGGERS[name]} ON `{TABLE}` FOR EACH ROW"
                f" SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = '{NOBODY_CHANGES}'"
            )


def missing(*, using: str = "default") -> list[str]:
    """The triggers that the database does not have."""
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = DATABASE()")
        there = {name for (name,) in cursor.fetchall()}
    return sorted(TRIGGERS.keys() - there)
