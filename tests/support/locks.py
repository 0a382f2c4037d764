"""Who waits for a lock in MySQL."""

from django.db import connection


def is_bucket_lock_wanted() -> bool:
    """Tell whether a worker waits for a bucket's lock, in the middle of its task."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT COUNT(*) FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND info LIKE %s",
            ["%seckill_bucket%FOR UPDATE%"],
        )
        return bool(cursor.fetchone()[0])
