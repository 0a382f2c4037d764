"""Celery tasks of orders and their money: thin, idempotent, ids only.

The periodic ones only find what is due and give each piece to a task of its own, so that a provider that
hangs holds up nobody else's money. What a lost message leaves undone comes up again.
"""

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from orders.providers.sandbox.delivery import deliver_due
from orders.services.asking import ask_about, claim_due_attempts
from orders.services.sending import claim_due_refunds, push_refund

EXPIRES_SECONDS = 30


@shared_task(name="orders.ask_due")
def ask_due() -> None:
    """Have every provider asked about the begun payments that were not heard of."""
    for attempt_id in claim_due_attempts(now=timezone.now()):
        ask_one.apply_async((attempt_id,), expires=EXPIRES_SECONDS)


@shared_task(name="orders.ask_one")
def ask_one(attempt_id: int) -> None:
    """Ask about one begun payment."""
    ask_about(attempt_id=attempt_id, clock=timezone.now)


@shared_task(name="orders.refund_due")
def refund_due() -> None:
    """Have refunds sent that were requested, and asked about that were sent."""
    for refund_id in claim_due_refunds(now=timezone.now()):
        refund_one.apply_async((refund_id,), expires=EXPIRES_SECONDS)


@shared_task(name="orders.refund_one")
def refund_one(refund_id: int) -> None:
    """Send, or ask about, one refund."""
    push_refund(refund_id=refund_id, clock=timezone.now)


@shared_task(name="orders.deliver_sandbox")
def deliver_sandbox() -> None:
    """Send the sandbox provider's notifications, where there is a sandbox."""
    if settings.SANDBOX:
        deliver_due(clock=timezone.now)
