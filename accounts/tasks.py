"""Work on the accounts that nobody waits for."""

from celery import shared_task
from django.contrib.auth.forms import PasswordResetForm
from django.utils import timezone, translation
from rest_framework_simplejwt.token_blacklist.models import OutstandingToken

ROWS_MAX = 10_000


@shared_task(name="accounts.forget_tokens")
def forget_tokens() -> None:
    """Delete refresh tokens that are too old to be used, so that the table does not grow; the rest next time."""
    old = OutstandingToken.objects.filter(expires_at__lte=timezone.now()).order_by("pk")
    OutstandingToken.objects.filter(pk__in=list(old.values_list("pk", flat=True)[:ROWS_MAX])).delete()


@shared_task(name="accounts.mail_reset", acks_late=False)
def mail_reset(email: str, domain: str, is_https: bool, language: str) -> None:  # noqa: FBT001  a message has names for it
    """Send a link for a new password to whoever has the address. Done twice, there are two mails."""
    form = PasswordResetForm({"email": email})
    with translation.override(language):
        if form.is_valid():
            form.save(domain_override=domain, use_https=is_https)
