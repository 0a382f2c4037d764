"""Django's own checks and the shop's (``config.checks``), with those for deployment and of the servers."""

from collections.abc import Iterator

from django.core import checks

from config.doctor.findings import Finding, fail, ok, warn

TOPIC = "checks"


def examine_checks() -> Iterator[Finding]:
    """Run them all; each message is a finding."""
    messages = checks.run_checks(include_deployment_checks=True, databases=["default"])
    told = [message for message in messages if message.level >= checks.WARNING and not message.is_silenced()]
    for message in told:
        make = fail if message.level >= checks.ERROR else warn
        # Django's own often have everything in the message.
        advice = message.hint or f"Django's reference of system checks says what {message.id} asks for."
        yield make(TOPIC, f"{message.id}: {message.msg}", advice)
    if not told:
        yield ok(TOPIC, "the checks of Django and the shop find nothing")
