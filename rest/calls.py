"""The base of every view of the API."""

from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.views import APIView

from rest.askers import address_key
from rest.throttles import throttle, throttle_key


class ApiView(APIView):
    """Counts the call before it looks who is asking, which takes SQL; DRF's own order is the other way round.

    ``throttle_scope`` names the rate in ``settings.THROTTLES``; None where the view counts by itself.
    """

    throttle_scope: ClassVar[str | None] = "any"

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Count, then do what DRF does before a method runs."""
        if self.throttle_scope is not None and self.authentication_classes:
            throttle(scope=self.throttle_scope, request=request)
        elif self.throttle_scope is not None:
            # Nobody is asked who he is, and a session that is not looked at lets caches keep the answer.
            throttle_key(scope=self.throttle_scope, key=address_key(request._request))  # noqa: SLF001
        super().initial(request, *args, **kwargs)
