"""A process that archives a sale and reconciles a bucket at the same time, until it is ended."""

import os
import sys
import threading
import time

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from django.utils import timezone  # noqa: E402  the settings must be there

from seckill.archive import Pace, advance, runs_of  # noqa: E402  as well
from seckill.archive_begin import Accepted, begin  # noqa: E402  as well
from seckill.gate.keys import BucketRef  # noqa: E402  as well
from seckill.repair import reconcile_and_repair  # noqa: E402  as well

# The shop does it once a minute.
BETWEEN_SECONDS = 1.0


def main() -> None:
    """Go on until the end."""
    sale_id, pool_id, number = map(int, sys.argv[1:])
    begin(sale_id=sale_id, accepted=Accepted(), now=timezone.now())
    threading.Thread(target=_archive, args=(sale_id,), daemon=True).start()
    print("at it", flush=True)
    while True:
        reconcile_and_repair(bucket=BucketRef(pool_id=pool_id, number=number), clock=timezone.now)
        time.sleep(BETWEEN_SECONDS)


def _archive(sale_id: int) -> None:
    for run in runs_of(sale_id=sale_id):
        advance(run=run, clock=timezone.now, has_time=Pace())


if __name__ == "__main__":
    main()
