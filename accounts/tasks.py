"""Work on the accounts that nobody waits for."""

from celery import shared_task
from django.utils import timezone
from rest_framework_simplejwt.token_blacklist.models import OutstandingToken

ROWS_MAX = 10_000


@shared_task(name="accounts.forget_tokens")
def forget_tokens() -> None:
    """Delete refresh tokens that are too old to be used, so that the table does not grow; the rest next time."""
    old = OutstandingToken.objects.filter(expires_at__lte=timezone.now()).order_by("pk")
    OutstandingToken.objects.filter(pk__in=list(old.values_list("pk", flat=True)[:ROWS_MAX])).delete()
