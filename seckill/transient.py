"""Which database errors are about one row, which pass by themselves, and which are neither."""

from django.db import DatabaseError

# The only errors that are about one row and refuse it: NULL, out of range, bad character, too long,
# missing parent, unsigned underflow, and a violated CHECK (MySQL 3819, MariaDB 4025).
ROW_ERRORS = frozenset({1048, 1264, 1366, 1406, 1452, 1690, 3819, 4025})
DUPLICATE_KEY = 1062
LOCK_WAIT = 1205
# Lock wait, deadlock, too many connections, shutdown, network, interrupted, server gone, ended while idle in a
# transaction: nothing is known to be wrong, the whole transaction is to be tried again.
TRANSIENT_ERRORS = frozenset(
    {1040, 1053, 1158, 1159, 1160, 1161, 1205, 1213, 1317, 1927, 2002, 2003, 2006, 2013, 3024, 4031}
)


def error_code(error: DatabaseError) -> int | None:
    """Return the number MySQL gave the error, if any."""
    code = error.args[0] if error.args else None
    return code if isinstance(code, int) else None


def is_transient(error: DatabaseError) -> bool:
    """Tell whether the same transaction may well pass next time."""
    return error_code(error) in TRANSIENT_ERRORS


def is_about_a_row(error: DatabaseError) -> bool:
    """Tell whether one row cannot be written, however often it is tried."""
    return error_code(error) in ROW_ERRORS
