"""Notifications from providers: verified, turned into a fact, acted on once."""

import logging

from orders.errors import NoticeInvalid
from orders.models import Refund
from orders.providers import Paid, PaymentMoved, RawNotice, RefundAnswer, provider_named
from orders.services.asking import ask_soon
from orders.services.money import take_money
from orders.services.sending import end_refund

logger = logging.getLogger(__name__)


def take_notice(*, provider: str, notice: RawNotice) -> str:
    """Take a notification in; return what the provider wants to hear once that is done.

    Unwelcome money is answered like welcome money: it is recorded, and the provider need not repeat.
    Raises ``UnknownProvider``, ``NoticeInvalid``; then nothing is recorded.
    """
    chosen = provider_named(provider)
    try:
        fact = chosen.verify(notice=notice)
    except NoticeInvalid as error:
        logger.warning("a notification in the name of %s is not genuine: %s", provider, error)
        raise
    now = notice.received_at
    if isinstance(fact, Paid):
        take_money(provider=provider, money=fact, now=now)
    elif isinstance(fact, PaymentMoved):
        ask_soon(provider=provider, reference=fact.order_reference, now=now)
    else:
        refund = Refund.objects.filter(provider=provider, reference=fact.reference).first()
        if refund is not None:
            end_refund(refund_id=refund.pk, answer=RefundAnswer(standing=fact.standing), now=now)
    return chosen.acknowledgement
