"""A whole shop on this machine: servers, tables, goods and processes, for the demo and for `make up`."""

import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import django

from benchmarks.leaving import Interrupted, leave_on_signals
from benchmarks.screen import Screen
from benchmarks.servers import PrivateServers, ServersError
from benchmarks.shop import Shop


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A shop and the servers it uses."""

    shop: Shop
    servers: PrivateServers

    def require_running(self) -> None:
        """Raise ServersError with the end of the right log when something has ended by itself."""
        self.servers.require_running()
        self.shop.require_running()


@contextmanager
def running_shop(*, directory: Path, screen: Screen, is_fresh: bool, port: int | None = None) -> Iterator[Stage]:
    """Run a stocked shop under `directory` for the length of the block; nothing of it runs afterwards.

    Servers are private ones, emptied first if `is_fresh`, or those the environment names, which keep what they have.
    Django is set up in this process, for the same servers. ServersError: something does not start.
    """
    with ExitStack() as running:
        with screen.step("Starting a database and two Redis servers"):
            servers = running.enter_context(PrivateServers(directory=directory / "servers", is_fresh=is_fresh))
            environment = {**servers.environment(), "SANDBOX": "1"}  # Visitors pay at the sandbox.
        with screen.step("Making the tables and filling the warehouse"):
            shop = running.enter_context(Shop(directory=directory / "shop", environment=environment, port=port))
            shop.web.launch()  # It needs no tables to start, so let it.
            set_up_django(environment)
            _stock(shop)
        with screen.step("Starting Granian, a Celery worker and beat"):
            shop.start()
        stage = Stage(shop=shop, servers=servers)
        try:
            yield stage
        except Exception:
            stage.require_running()  # What has died explains more than whoever missed it.
            raise


def run_on_stage(name: str, act: Callable[[Screen], int]) -> int:
    """Run a whole program and return its exit status, 128 + n after signal n.

    What fails or ends it is said on standard error.
    """
    leave_on_signals()
    screen = Screen()
    try:
        return act(screen)
    except Interrupted as leaving:
        print(f"The {name} was interrupted; nothing of it is left running.", file=sys.stderr)
        return leaving.status
    except ServersError as error:
        print(f"The {name} failed at: {screen.doing}.\n{error}", file=sys.stderr)
    except Exception:  # noqa: BLE001  the top of a program: whatever it was is shown, with the step it happened in
        print(f"The {name} failed at: {screen.doing}.\n{traceback.format_exc()}", file=sys.stderr)
    return 1


def set_up_django(environment: Mapping[str, str]) -> None:
    """Make this process one of the shop's, but for its log: what the screen shows is not for log lines."""
    os.environ.update(environment, DJANGO_SETTINGS_MODULE="config.settings", LOG_LEVEL="ERROR")
    django.setup()


def _stock(shop: Shop) -> None:
    from benchmarks import catalogue

    catalogue.migrate()
    shop.worker.launch()
    shop.beat.launch()
    catalogue.stock_catalogue()
