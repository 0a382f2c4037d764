"""What ``deploy/`` ships: each metric and label named there is really told, and Prometheus takes the rules."""

import json
import re
import subprocess
from functools import partial
from typing import Any

import pytest
import yaml
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from benchmarks.servers.process import executable
from config.celery import app
from config.task_signals import begin_task, end_task
from config.timing import with_stage_times
from metrics.definitions import begin_process
from orders.models import Order
from orders.services import cancel_order
from seckill.answer_counts import show_all
from seckill.incidents import Severity, open_incident
from seckill.reconciliation import reconcile_bucket
from seckill.returns import return_closed_orders
from seckill.settlement import settle_bucket
from seckill.stage_times import stage_sums
from tests.config.test_lane import body_of, call, environ_of
from tests.plugin import ROOT
from tests.support.api import PURCHASES
from tests.support.asgi import django
from tests.support.broker import wait_for_message
from tests.support.scrape import TOKEN, Samples, scrape
from tests.support.shop import make_tickets, open_sale
from tests.support.web import wait_until

RULES = ROOT / "deploy" / "prometheus" / "alerts.yml"
RULE_TESTS = RULES.with_name("alerts_test.yml")
DASHBOARD = ROOT / "deploy" / "grafana" / "seckill.json"

NAME = re.compile(r"\bseckill_[a-z_]+")
CHOSEN = re.compile(r"\b(seckill_[a-z_]+)\{([^}]*)\}")
MATCH = re.compile(r'(\w+)(=~|!=|!~|=)"([^"]*)"')
# Prometheus puts these on every series.
GIVEN = {"instance", "job"}
# Only trouble makes these.
RARE = {"500", "failed", "failure", "critical", "warning", "excess|leak"}


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def expressions() -> list[str]:
    """Every query of the rules and of the dashboard."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    shown = [target["expr"] for panel in panels for target in panel.get("targets", [])]
    return shown + [rule["expr"] for rule in rules()]


def lived_through(settings: Settings) -> Samples:
    """Scrape a shop where everything that is counted has happened."""
    settings.METRICS_TOKEN, settings.STAGE_SAMPLE_ONE_IN = TOKEN, 1
    shop, door = open_sale(units=3), with_stage_times(django())
    for ticket in make_tickets(shop, 2):
        call(door, environ_of("POST", PURCHASES, body_of(ticket)))
    wait_for_message(shop.bucket)
    settle_bucket(bucket=shop.bucket, clock=timezone.now)
    number, buyer_id = Order.objects.values_list("number", "buyer_id")[0]
    cancel_order(number=number, buyer_id=buyer_id, now=timezone.now())
    return_closed_orders(clock=timezone.now)
    call(door, environ_of("POST", PURCHASES, body_of(make_tickets(shop, 1)[0])))
    reconcile_bucket(bucket=shop.bucket, clock=timezone.now)
    open_incident(kind="drift", severity=Severity.WARNING, bucket=shop.bucket, detail="", now=timezone.now())
    task = app.tasks["seckill.settle"]
    begin_task(task_id="1", task=task)
    end_task(task=task, state="SUCCESS")
    Client().get("/api/v1/time/")
    show_all()
    for role in ("web", "worker"):
        begin_process(role=role)
    wait_until(partial(_is_there, "seckill_wake_ups_total"), seconds=5)
    stage_sums.flush()
    return scrape()


def _is_there(name: str) -> bool:
    return name in {found for found, _ in scrape()}


def test_every_metric_and_label_that_is_named_is_told(settings: Settings) -> None:
    told = lived_through(settings)
    labels: dict[str, set[str]] = {}
    values: dict[tuple[str, str], set[str]] = {}
    for name, pairs in told:
        labels.setdefault(name, set()).update(dict(pairs))
        for label, value in pairs:
            values.setdefault((name, label), set()).add(value)
    named = {name for expression in expressions() for name in NAME.findall(expression)}
    assert len(named) > 30
    assert named - labels.keys() == set()
    for expression in expressions():
        for name, choice in CHOSEN.findall(expression):
            for label, sign, value in MATCH.findall(choice):
                assert label in labels[name] | GIVEN, (name, label)
                if label not in GIVEN and value not in RARE:
                    wanted = set(value.split("|")) if sign == "=~" else {value}
                    assert wanted <= values[name, label], (name, label, value)


def test_every_rule_says_what_to_do() -> None:
    for rule in rules():
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert len(rule["annotations"]["summary"]) > 10
        assert len(rule["annotations"]["runbook"]) > 40, rule["alert"]
    names = [rule["alert"] for rule in rules()]
    assert len(names) == len(set(names))
    tested = RULE_TESTS.read_text()
    for name in ("ServerDown", "NoWorker", "BeatSilent", "BucketShut", "QueueOld", "OutOfBalance", "Incident"):
        assert f"Seckill{name}" in names
        assert f"Seckill{name}" in tested


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "rules", str(RULES)),
        ("test", "rules", str(RULE_TESTS)),
        ("check", "config", "--syntax-only", str(RULES.with_name("prometheus.yml"))),
    ],
)
def test_prometheus_takes_them(arguments: tuple[str, ...]) -> None:
    """By promtool, which ``make prepare`` finds or fetches for the tests."""
    promtool = executable("promtool", str(ROOT / ".venv" / "bin" / "promtool"))
    done = subprocess.run([promtool, *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_dashboard_can_be_imported() -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(ids) == len(set(ids))
    cells = [
        (x, y)
        for panel in dashboard["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
