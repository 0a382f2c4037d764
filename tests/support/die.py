"""A process that does one job and kills itself by SIGKILL at one function: ``python -m tests.support.die``.

Arguments: the job (a key of ``jobs``), the pool, the dotted name of a function, and whether
to die ``before`` or ``after`` its call.
Arguments: the job (``settle``, ``rebuild``, ``return``, ``archive``, or one of ``die_money``), the pool (or what that
job is about), the dotted name of a function, and whether to die ``before`` or ``after`` its call.
"""

import os
import pkgutil
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from django.db import connection, connections

ROOT = Path(__file__).resolve().parent.parent.parent


def run_and_die(*, job: str, pool_id: int, function: str, moment: str) -> int:
    """Run the job in a process of its own against the test database; return its exit code (-9 when it died)."""
    base, _, _ = os.environ["DATABASE_URL"].rpartition("/")
    environment = {
        **os.environ,
        "DATABASE_URL": f"{base}/{connection.settings_dict['NAME']}",
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "LOG_LEVEL": "CRITICAL",
    }
    command = [sys.executable, "-m", "tests.support.die", job, str(pool_id), function, moment]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False, timeout=60).returncode


def die_in_a_fork(job: Callable[[], object]) -> int:
    """Do a job in a fork of this process; return its exit code: -9 when the job killed it, 0 when it did not."""
    pid = os.fork()
    if pid == 0:
        # The parent's connections stay the parent's: one that is closed or even forgotten here hangs up for both.
        kept = []
        for wrapper in connections.all(initialized_only=True):
            kept.append(wrapper.connection)
            wrapper.connection = None
        try:
            job()
        finally:
            os._exit(1 if sys.exc_info()[0] else 0)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


def _deadly(original: Any, moment: str) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        if moment == "after":
            original(*args, **kwargs)
        os.kill(os.getpid(), signal.SIGKILL)

    return call


def main() -> None:
    """Do the job."""
    import django

    django.setup()
    from django.utils import timezone

    from orders.services import expire_orders
    from seckill.archive import archive_due
    from seckill.followup import follow_up
    from seckill.gate.keys import BucketRef
    from seckill.gathering import Want, gather
    from seckill.models import SaleItem, SalePool
    from seckill.rebuild import rebuild_bucket
    from seckill.returns import return_closed_orders
    from seckill.settlement import settle_bucket
    from seckill.withdrawing import withdraw_sale
    from tests.support import die_money

    job, pool_id, function, moment = sys.argv[1:]
    module_name, _, name = function.rpartition(".")
    owner = pkgutil.resolve_name(module_name)
    setattr(owner, name, _deadly(getattr(owner, name), moment))
    if job in die_money.JOBS:
        die_money.JOBS[job](int(pool_id), timezone.now)
        return
    bucket = BucketRef(pool_id=int(pool_id), number=0)
    jobs: dict[str, Any] = {
        "settle": partial(settle_bucket, bucket=bucket),
        "rebuild": partial(rebuild_bucket, bucket=bucket),
        "return": return_closed_orders,
        "expire": lambda clock: expire_orders(now=clock(), batch_size=2),
        "archive": lambda clock: archive_due(clock=lambda: clock() + timedelta(hours=1), seconds=30),
        "follow_up": follow_up,
        "gather": lambda clock: gather(
            want=Want(bucket=bucket, item_id=SaleItem.objects.get(pool_id=int(pool_id)).pk, units=2), clock=clock
        ),
        "withdraw": partial(withdraw_sale, sale_id=SalePool.objects.get(pk=int(pool_id)).sale_id),
    }
    jobs[job](clock=timezone.now)


if __name__ == "__main__":
    main()
