"""A private RabbitMQ on free ports of this machine: what `prepare rabbitmq` has unpacked, without a service."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.servers.account import Account
from benchmarks.servers.directory import locked
from benchmarks.servers.process import HOST, Program, Server, ServersError, free_port

UNPACKED = Path(sys.prefix) / "rabbitmq" / "usr" / "lib"
READY = b"completed with"


class RabbitMQ:
    """A node, and the directory of ports that Erlang's nodes find each other by."""

    def __init__(self, *, node: Server, commands: Path, environment: dict[str, str]) -> None:
        self.node = node
        self._commands, self._environment = commands, environment

    @property
    def url(self) -> str:
        """What BROKER_URL is to be: the virtual host is /."""
        return f"amqp://guest:guest@{HOST}:{self.node.port}//"

    def command(self, name: str, *arguments: str) -> tuple[Path, tuple[str, ...], dict[str, str]]:
        """Return path, arguments and environment of one of its own commands, as rabbitmqctl."""
        return self._commands / name, arguments, {**os.environ, **self._environment}


@contextmanager
def rabbitmq(*, directory: Path) -> Iterator[RabbitMQ]:
    """Run one with its data in a directory, emptied first, and end it afterwards."""
    directory = directory.absolute()
    commands = _commands()
    with ExitStack() as running:
        running.enter_context(locked(directory))
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        names, port = free_port(), free_port()
        environment = _environment(directory, port=port, names=names)
        for program in _programs(directory, commands, environment=environment, port=port, names=names):
            server = Server(program=program)
            running.callback(server.kill)
            server.start()
        yield RabbitMQ(node=server, commands=commands, environment=environment)


def _commands() -> Path:
    found = sorted(UNPACKED.glob("rabbitmq/lib/rabbitmq_server-*/sbin"))
    if not found:
        raise ServersError("RabbitMQ is not there: run `benchmarks/prepare rabbitmq`")
    return found[-1]


def _environment(directory: Path, *, port: int, names: int) -> dict[str, str]:
    return {
        "ERL_ROOTDIR": str(UNPACKED / "erlang"),
        "PATH": f"{UNPACKED / 'erlang' / 'bin'}:{os.environ.get('PATH', os.defpath)}",
        "ERL_EPMD_PORT": str(names),
        "ERL_EPMD_ADDRESS": HOST,
        # Erlang keeps there the secret that its nodes share.
        "HOME": str(directory),
        "RABBITMQ_NODENAME": "seckill@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": HOST,
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(free_port()),
        "RABBITMQ_MNESIA_BASE": str(directory / "data"),
        "RABBITMQ_LOGS": "-",
        "RABBITMQ_CONF_ENV_FILE": str(directory / "none"),
        "RABBITMQ_CONFIG_FILE": str(directory / "none"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(directory / "plugins"),
    }


def _programs(
    directory: Path, commands: Path, *, environment: dict[str, str], port: int, names: int
) -> tuple[Program, Program]:
    epmd = str(UNPACKED / "erlang" / "bin" / "epmd")
    server = str(commands / "rabbitmq-server")
    return (
        Program(
            executable=epmd,
            arguments=(epmd, "-port", str(names), "-address", HOST),
            port=names,
            directory=directory,
            log=directory / "epmd.log",
            account=Account(),
        ),
        Program(
            executable=server,
            arguments=(server,),
            port=port,
            directory=directory,
            log=directory / "node.log",
            account=Account(),
            ready_line=READY,
            environment=environment,
        ),
    )
