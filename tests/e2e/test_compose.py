"""``deploy/`` is not fiction: its commands, settings and files run a shop here, without containers around them."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.servers import PrivateServers
from benchmarks.servers.account import Account
from benchmarks.servers.process import HOST, Program, Server, free_port
from benchmarks.shop import ROOT
from config.celery import app
from orders.models import Order
from seckill.tickets import read_ticket
from tests.support.shop import make_ticket, open_sale
from tests.support.web import wait_until

pytestmark = pytest.mark.slow

DEPLOY = ROOT / "deploy"
SERVICES = ("web", "worker", "worker-slow", "beat")
VARIABLE = re.compile(r"\$\{([A-Z_]+)(?::[?-]([^}]*))?\}")
ENV = {"SHOP_HOST": "shop.example", "SECRET_KEY": "s" * 64, "MYSQL_PASSWORD": "p4ssw0rd", "TLS_DIRECTORY": "/tls"}


def filled(value: Any) -> Any:
    """Fill in what compose would, from ``ENV`` and the defaults."""
    if isinstance(value, str):
        return VARIABLE.sub(lambda found: ENV.get(found[1], found[2] or ""), value)
    if isinstance(value, dict):
        return {name: filled(part) for name, part in value.items()}
    return [filled(part) for part in value] if isinstance(value, list) else value


def composed() -> dict[str, Any]:
    services: dict[str, Any] = filled(yaml.safe_load((DEPLOY / "compose.yaml").read_text()))["services"]
    return services


def dockerfile(instruction: str) -> list[str]:
    """Return the arguments of every such instruction of the image's last stage, lines joined."""
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    last = text[text.rindex("\nFROM ") :]
    return [line.partition(" ")[2].strip() for line in last.splitlines() if line.startswith(f"{instruction} ")]


def command_of(service: Mapping[str, Any]) -> list[str]:
    command: list[str] = service.get("command") or json.loads(dockerfile("CMD")[-1])
    return command


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with what the image holds, and nothing else of the project."""
    directory = tmp_path_factory.mktemp("image")
    for line in dockerfile("COPY"):
        if line.startswith("--from"):
            continue
        source, target = line.split()
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, directory / target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / source, directory / target)
    return directory


def run_as(service: Mapping[str, Any], *, image: Path, environment: Mapping[str, str], port: int) -> Program:
    """Run a service's own command in the image's directory; only the port and the servers' addresses are of here."""
    name, *arguments = command_of(service)
    if name == "granian":
        arguments = [f"--port={port}" if part.startswith("--port=") else part for part in arguments]
    program = str(Path(sys.executable).parent / name)
    return Program(
        executable=program,
        arguments=(program, *arguments),
        port=port,
        directory=image,
        log=image / f"{name}-{port}.log",
        account=Account(),
        environment={**service["environment"], **environment},
    )


@pytest.fixture
def here(test_environment: Mapping[str, str]) -> dict[str, str]:
    """What has to be other than in the file: where the servers are, and no TLS in front."""
    names = ("DATABASE_URL", "STOCK_REDIS_URL", "CACHE_REDIS_URL", "BROKER_URL", "SECRET_KEY", "HTTPS")
    told = {name: test_environment[name] for name in names if name in test_environment}
    return {"BROKER_URL": told["CACHE_REDIS_URL"], **told, "ALLOWED_HOSTS": HOST, "LOG_LEVEL": "INFO"}


@pytest.fixture
def shop(image: Path, here: dict[str, str]) -> Iterator[int]:
    """All services of the shop by their own commands; the port of the web."""
    services, port = composed(), free_port()
    with ExitStack() as running:
        for number, name in enumerate(SERVICES):
            server = Server(
                program=run_as(services[name], image=image, environment=here, port=port if name == "web" else number)
            )
            server.start()
            running.callback(server.stop)
        wait_until(lambda: _health(port), seconds=30)
        yield port


def _health(port: int) -> bool:
    """Ask as the image's HEALTHCHECK does, by its own words."""
    command = json.loads(dockerfile("HEALTHCHECK")[-1].partition("CMD ")[2])
    words = [part.replace(":8000/", f":{port}/") for part in command[1:]]
    return subprocess.run([sys.executable, *words], capture_output=True, check=False).returncode == 0


def test_the_composed_shop_sells_and_settles(shop: int) -> None:
    ticket = make_ticket(open_sale(units=1))
    wire = HTTPConnection(HOST, shop, timeout=10)
    body = json.dumps({"ticket": ticket, "quantity": 1})
    headers = {"Content-Type": "application/json", "X-Forwarded-Proto": "https", "X-Forwarded-For": HOST}
    wire.request("POST", "/api/v1/purchases/", body, headers)
    answer = wire.getresponse()
    assert (answer.status, json.loads(answer.read())["order_no"]) == (202, read_ticket(ticket).order_no)
    wire.close()
    wait_until(lambda: Order.objects.filter(number=read_ticket(ticket).order_no).exists(), seconds=10)


def test_the_image_holds_what_the_commands_need(image: Path, here: dict[str, str]) -> None:
    for arguments in (("check",), ("migrate", "--plan"), ("doctor", "--help")):
        command = [sys.executable, "manage.py", *arguments]
        path = {"PATH": str(Path(sys.executable).parent)}
        done = subprocess.run(command, cwd=image, env={**path, **here}, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_every_queue_has_a_worker() -> None:
    served = [
        queue
        for name in SERVICES
        for part in command_of(composed()[name])
        if part.startswith("--queues=")
        for queue in part.removeprefix("--queues=").split(",")
    ]
    assert sorted(served) == sorted(queue.name for queue in app.conf.task_queues)


def test_the_units_run_what_the_containers_run() -> None:
    """Two ways to run the same processes; only the address and the paths differ."""
    for name in SERVICES:
        unit = (DEPLOY / "systemd" / f"seckill-{name}.service").read_text()
        (line,) = re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)
        words = line.replace("%%", "%").replace("127.0.0.1", "0.0.0.0").split()  # noqa: S104  as in the container
        assert [Path(words[0]).name, *words[1:]] == command_of(composed()[name])


def test_no_secret_has_a_default_and_the_example_names_every_variable() -> None:
    text = (DEPLOY / "compose.yaml").read_text()
    example = dict(re.findall(r"^([A-Z_]+)=(.*)$", (DEPLOY / ".env.example").read_text(), re.MULTILINE))
    asked = {name for name, _ in VARIABLE.findall(text)} - {"VERSION"}
    assert asked == example.keys()
    assert (example["SECRET_KEY"], example["MYSQL_PASSWORD"]) == ("", "")
    assert re.search(r"\$\{SECRET_KEY:\?", text)
    assert re.search(r"\$\{MYSQL_PASSWORD:\?", text)


def test_the_stock_server_forgets_and_evicts_nothing(servers: PrivateServers) -> None:
    command = composed()["stock"]["command"]
    assert command[command.index("--appendonly") + 1] == "yes"
    assert command[command.index("--maxmemory-policy") + 1] == "noeviction"
    own = [servers.environment()[name] for name in ("STOCK_REDIS_URL", "CACHE_REDIS_URL")]
    assert len(set(own)) == 2
