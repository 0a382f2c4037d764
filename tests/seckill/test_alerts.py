"""Alerts: one message when an incident opens, rises or is closed, sent at least once by every channel there is."""

import hashlib
import hmac
import json
import logging
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial

import pytest
from django.contrib.auth.models import Permission, User
from django.core import mail
from django.db import transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from benchmarks.servers import PrivateServers
from seckill import alerts, channels
from seckill.advice import ADVICE
from seckill.alert_tables import Alert, AlertDelivery
from seckill.alerts import ATTEMPTS_MAX, deliver_due
from seckill.channels import Message
from seckill.gate.keys import BucketRef
from seckill.incidents import Severity, open_incident, resolve_incident
from seckill.models import Incident
from seckill.tasks import deliver_alerts
from tests.config.test_start import LOAD_WEB, start
from tests.support.broker import broker
from tests.support.receiver import Receiver, receiver
from tests.support.shop import make_sale
from tests.support.threads import run_together
from tests.support.web import wait_until

NOW = datetime(2026, 6, 18, 10, 0, tzinfo=timezone.get_default_timezone())
HOOK = "tests.seckill.test_alerts.hook"

heard: list[Message] = []


def hook(message: Message) -> None:
    """Stands for a function that an operator has named."""
    heard.append(message)


def broken_hook(_message: Message) -> None:
    raise ZeroDivisionError


@pytest.fixture(autouse=True)
def silence() -> Iterator[None]:
    heard.clear()
    yield
    heard.clear()


@pytest.fixture
def bucket() -> BucketRef:
    return BucketRef(pool_id=make_sale().pool.pk, number=0)


@pytest.fixture
def listener(settings: Settings) -> Iterator[Receiver]:
    """A webhook that listens, named in the settings."""
    with receiver() as listening:
        settings.ALERT_WEBHOOK_URL = listening.url
        settings.ALERT_WEBHOOK_SECRET = "secret"
        yield listening


def see(bucket: BucketRef, *, kind: str = "drift", severity: Severity = Severity.WARNING, units: int = 0) -> None:
    open_incident(kind=kind, severity=severity, bucket=bucket, detail=f"off by {units}", now=NOW, units=units)


def close(bucket: BucketRef, *, kind: str = "drift") -> None:
    resolve_incident(kind=kind, bucket=bucket, now=NOW)


def told() -> list[str]:
    return list(Alert.objects.order_by("pk").values_list("event", flat=True))


def deliver(*, at: datetime = NOW) -> int:
    return deliver_due(clock=lambda: at)


def test_one_message_when_it_opens_and_none_per_run(bucket: BucketRef) -> None:
    for _ in range(9):
        see(bucket, units=1)
    assert told() == ["OPENED"]
    assert Incident.objects.get().count == 9


def test_it_rises_by_orders_of_magnitude_and_by_severity(bucket: BucketRef) -> None:
    """Times seen 10, 100; units 3 → 30; a warning that becomes critical; and never falls back."""
    for _ in range(100):
        see(bucket, units=3)
    assert list(Alert.objects.values_list("event", "count")) == [("OPENED", 1), ("RISEN", 10), ("RISEN", 100)]
    see(bucket, units=29)
    assert len(told()) == 3
    see(bucket, units=30)
    see(bucket, severity=Severity.CRITICAL)
    see(bucket, severity=Severity.WARNING, units=30)
    assert list(Alert.objects.order_by("pk").values_list("event", "severity", "units"))[3:] == [
        ("RISEN", "WARNING", 30),
        ("RISEN", "CRITICAL", 0),
    ]
    assert Incident.objects.get().severity == "CRITICAL"


def test_units_that_were_not_known_at_first(bucket: BucketRef) -> None:
    see(bucket)
    see(bucket, units=9)
    assert told() == ["OPENED"]
    see(bucket, units=10)
    assert told() == ["OPENED", "RISEN"]


def test_one_message_when_it_is_closed_and_the_next_is_a_new_one(bucket: BucketRef) -> None:
    resolve_incident(kind="drift", bucket=bucket, now=NOW)
    assert told() == []
    see(bucket)
    for _ in range(3):
        resolve_incident(kind="drift", bucket=bucket, now=NOW)
    see(bucket)
    assert told() == ["OPENED", "CLOSED", "OPENED"]


def test_eight_at_once_are_one_incident_and_one_message(bucket: BucketRef) -> None:
    """CASES 35: whoever loses the race to open it ends in no deadlock."""
    for kind in ("drift", "phantom", "dead_letter"):
        run_together(partial(see, kind=kind), [bucket] * 8)
        run_together(partial(close, kind=kind), [bucket] * 8)
    assert Incident.objects.count() == 3
    assert told() == ["OPENED", "CLOSED"] * 3


def test_what_is_rolled_back_is_told_to_nobody(
    bucket: BucketRef, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.ALERT_HOOKS = [HOOK]
    with transaction.atomic():
        see(bucket)
        transaction.set_rollback(True)
    assert not Alert.objects.exists()
    assert deliver() == 0
    assert caplog.text == ""


def test_the_log_says_it_as_an_error(bucket: BucketRef, caplog: pytest.LogCaptureFixture) -> None:
    see(bucket)
    resolve_incident(kind="drift", bucket=bucket, now=NOW)
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
        (logging.ERROR, f"incident drift {bucket} opened: off by 0"),
        (logging.WARNING, f"incident drift {bucket} closed: off by 0"),
    ]


def test_every_channel_says_it_once(bucket: BucketRef, settings: Settings, listener: Receiver) -> None:
    settings.ALERT_HOOKS = [HOOK]
    settings.ADMINS = [("Operator", "operator@example.com")]
    see(bucket, severity=Severity.CRITICAL, units=2)
    assert [deliver(), deliver()] == [3, 0]
    assert [(message.kind, message.event, message.units) for message in heard] == [("drift", "OPENED", 2)]
    (letter,) = mail.outbox
    assert letter.to == ["operator@example.com"]
    assert letter.subject == f"[seckill] CRITICAL: drift opened in 秒杀 sale (bucket {bucket})"
    assert letter.body.splitlines()[2] == "What was found: off by 2"
    assert letter.body.splitlines()[5] == f"What the system does: {ADVICE['drift'].did}"
    assert letter.body.splitlines()[6] == f"What you can do: {ADVICE['drift'].can}"
    (request,) = listener.heard
    body = json.loads(request.body)
    assert {name: body[name] for name in ("kind", "event", "severity", "bucket", "sale", "detail", "units")} == {
        "kind": "drift",
        "event": "OPENED",
        "severity": "CRITICAL",
        "bucket": str(bucket),
        "sale": "秒杀 sale",
        "detail": "off by 2",
        "units": 2,
    }
    assert set(AlertDelivery.objects.values_list("channel", "state")) == {
        (f"hook:{HOOK}", "SENT"),
        ("mail", "SENT"),
        ("webhook", "SENT"),
    }


def test_the_webhook_is_signed_over_time_and_body(bucket: BucketRef, listener: Receiver) -> None:
    see(bucket)
    deliver()
    (request,) = listener.heard
    fields = dict(part.split("=") for part in request.headers["X-Seckill-Signature"].split(","))
    signed = fields["t"].encode() + b"." + request.body
    assert fields["v1"] == hmac.new(b"secret", signed, hashlib.sha256).hexdigest()
    assert abs(int(fields["t"]) - timezone.now().timestamp()) < 60
    assert request.headers["Idempotency-Key"] == str(AlertDelivery.objects.get().pk)


@pytest.mark.parametrize("answer", [500, 404, 301, 307])
def test_a_webhook_that_does_not_take_it_is_tried_again(answer: int, bucket: BucketRef, listener: Receiver) -> None:
    """The same message by the same id; a redirect is not followed with a signed body."""
    listener.answers = [answer]
    see(bucket)
    assert deliver() == 0
    row = AlertDelivery.objects.get()
    assert (row.state, row.attempts, row.due_at, row.error) == (
        "DUE",
        1,
        NOW + timedelta(seconds=6),
        f"HTTPError: the webhook answered {answer}",
    )
    assert deliver(at=NOW + timedelta(seconds=5)) == 0
    assert deliver(at=NOW + timedelta(seconds=6)) == 1
    assert [request.headers["Idempotency-Key"] for request in listener.heard] == [str(row.pk)] * 2
    assert listener.heard[0].body == listener.heard[1].body


def test_after_ten_attempts_it_is_given_up_for_all_to_see(
    bucket: BucketRef, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """51 minutes of trying; the other channel is not held up; and an operator may have it sent again."""
    settings.ALERT_HOOKS = ["tests.seckill.test_alerts.broken_hook", HOOK]
    see(bucket)
    at, attempts = NOW, 0
    while (row := AlertDelivery.objects.get(channel__endswith="broken_hook")).state == "DUE":
        at = row.due_at
        deliver(at=at)
        attempts += 1
    assert (attempts, row.state, row.error) == (ATTEMPTS_MAX, "GIVEN_UP", "ZeroDivisionError: ")
    assert at - NOW == timedelta(minutes=51, seconds=6)
    assert len(heard) == 1
    assert "is given up after 10 attempts" in caplog.text
    client = Client()
    user = User.objects.create_user("employee", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=["view_alertdelivery"]))
    client.force_login(user)
    data = {"action": "send_again", "_selected_action": [row.pk], "reason": "mail is back"}
    page = reverse("admin:seckill_alertdelivery_changelist")
    client.post(page, data)
    assert AlertDelivery.objects.get(pk=row.pk).state == "GIVEN_UP"
    user.user_permissions.add(Permission.objects.get(codename="resend_alertdelivery"))
    assert "1 delivery will be tried again" in client.post(page, data, follow=True).content.decode()
    row.refresh_from_db()
    assert (row.state, row.attempts) == ("DUE", 0)


def test_two_senders_at_once_say_it_once(
    bucket: BucketRef, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second skips what the first has claimed, while the first is still sending."""
    settings.ALERT_HOOKS = [HOOK]
    see(bucket)
    sending, may_go_on = threading.Event(), threading.Event()

    def slow(*, channel: str, message: Message) -> None:
        sending.set()
        assert may_go_on.wait(10)
        hook(message)

    monkeypatch.setattr(channels, "send", slow)

    def first() -> int:
        return deliver()

    def second() -> int:
        assert sending.wait(10)
        try:
            return deliver()
        finally:
            may_go_on.set()

    assert run_together(lambda sender: sender(), [first, second]) == [1, 0]
    assert len(heard) == 1


def test_control_without_the_claim_it_is_said_twice(
    bucket: BucketRef, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The claim's control: two senders that only read what is due."""
    settings.ALERT_HOOKS = [HOOK]
    see(bucket)
    both_have_read = threading.Barrier(2, timeout=10)

    def only_read(*, now: datetime) -> list[AlertDelivery]:
        due = list(AlertDelivery.objects.filter(state="DUE"))
        both_have_read.wait()
        return due

    monkeypatch.setattr(alerts, "_claim", only_read)
    run_together(lambda _: deliver(), range(2))
    assert len(heard) == 2


def test_a_sender_that_dies_is_replaced_when_its_claim_runs_out(
    bucket: BucketRef, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At least once: killed after the message went out, before that was written down."""
    settings.ALERT_HOOKS = [HOOK]
    see(bucket)

    class Killed(BaseException):
        pass

    def send_and_die(*, channel: str, message: Message) -> None:
        hook(message)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(channels, "send", send_and_die)
        with pytest.raises(Killed):
            deliver()
    assert deliver(at=NOW + timedelta(seconds=119)) == 0
    assert deliver(at=NOW + timedelta(seconds=120)) == 1
    assert heard[0] == heard[1]


def test_a_late_sender_does_not_mark_what_somebody_else_has_claimed(
    bucket: BucketRef, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CASES 9: it slept past its claim; the second's failure stands, and is tried again."""
    settings.ALERT_HOOKS = [HOOK]
    see(bucket)
    later = NOW + timedelta(seconds=120)

    def sleep_and_send(*, channel: str, message: Message) -> None:
        monkeypatch.setattr(channels, "send", fail)
        assert deliver(at=later) == 0

    def fail(*, channel: str, message: Message) -> None:
        raise OSError("no route")

    monkeypatch.setattr(channels, "send", sleep_and_send)
    deliver()
    row = AlertDelivery.objects.get()
    assert (row.state, row.attempts, row.due_at) == ("DUE", 2, later + timedelta(seconds=12))


def test_more_than_one_claim_in_one_run(bucket: BucketRef, settings: Settings) -> None:
    settings.ALERT_HOOKS = [HOOK]
    for number in range(25):
        see(bucket, kind=f"kind_{number}")
    assert deliver() == 25
    assert [message.kind for message in heard] == [f"kind_{number}" for number in range(25)]


def test_a_commit_nudges_and_the_task_sends(bucket: BucketRef, settings: Settings) -> None:
    settings.ALERT_HOOKS = [HOOK]
    see(bucket)
    with broker() as client:
        wait_until(lambda: client.llen("alerts") == 1, seconds=5)
    deliver_alerts()
    assert len(heard) == 1


@pytest.mark.slow
def test_a_broker_that_is_away_is_no_matter(bucket: BucketRef, settings: Settings, servers: PrivateServers) -> None:
    """The incident is opened at once; beat has it told when there is a broker again."""
    settings.ALERT_HOOKS = [HOOK]
    servers.cache_redis.pause()
    try:
        see(bucket)
    finally:
        servers.cache_redis.resume()
    assert told() == ["OPENED"]
    assert deliver() == 1
    with broker() as client:
        wait_until(lambda: client.llen("alerts") == 1, seconds=10)


def test_nobody_to_tell_is_no_reason_to_publish(bucket: BucketRef) -> None:
    see(bucket)
    assert not AlertDelivery.objects.exists()
    with broker() as client:
        assert client.llen("alerts") == 0


@pytest.mark.slow
def test_a_webhook_without_a_secret_does_not_start(servers: PrivateServers) -> None:
    done = start(LOAD_WEB, {**servers.environment(), "ALERT_WEBHOOK_URL": "https://example.com"})
    assert done.returncode != 0
    assert "ALERT_WEBHOOK_SECRET is empty" in done.stderr
