"""The base of the operators' calls: whatever they change stands in the action log, before and after."""

from typing import Any, ClassVar

from django.apps import apps
from django.db.models import Model
from django.utils import timezone
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response

from actions.log import Deed, Facts, record, seen
from actions.models import Channel, Stage
from rest.actors import who_of
from rest.calls import ApiView

# What the number in an operator's address is the number of.
NAMED_BY = {"sale_id": "seckill.FlashSale", "item_id": "seckill.SaleItem", "pool_id": "seckill.SalePool"}


class RecordedView(ApiView):
    """Writes the action log for every call that may change something, once it is known that the caller may call it."""

    table: ClassVar[Any] = None
    _deed: Deed | None = None
    _before: Facts

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Do what every view does first, and then write who begins what."""
        super().initial(request, *args, **kwargs)
        if request.method in SAFE_METHODS:
            return
        deed = self._deed_of(request)
        self._before = self._see()
        record(deed=deed, now=timezone.now(), stage=Stage.BEGUN, before=self._before)
        self._deed = deed

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        """Write how it ended."""
        answer: Response = super().finalize_response(request, response, *args, **kwargs)
        if self._deed is not None:
            stage = Stage.DONE if answer.status_code < 400 else Stage.FAILED
            note = "" if stage == Stage.DONE else f"{answer.status_code} {(answer.data or {}).get('code', '')}"
            after = self._see() or (dict(answer.data) if stage == Stage.DONE else {})
            record(deed=self._deed, now=timezone.now(), stage=stage, before=self._before, after=after, note=note)
        return answer

    def _row(self) -> Model | None:
        """The row that the address names, by its number alone; it need not be there."""
        for name, key in self.kwargs.items():
            if (table := self.table if name == "change_id" else apps.get_model(NAMED_BY[name])) is not None:
                row: Model = table(pk=key)
                return row
        return None

    def _see(self) -> Facts:
        row = self._row()
        return seen(row)() if row is not None else {}

    def _deed_of(self, request: Request) -> Deed:
        row = self._row()
        table = type(row) if row is not None else self.table
        label = table._meta.label_lower if table is not None else ""  # noqa: SLF001
        key = str(row.pk) if row is not None else ""
        match = request.resolver_match
        reason = request.data.get("reason", "") if isinstance(request.data, dict) else ""
        return Deed(
            by=who_of(request._request, Channel.API, user=request.user),  # noqa: SLF001
            what=f"api.{match.url_name if match else ''}",
            table=label,
            key=key,
            thing=f"{label} {key}".strip(),
            reason=reason if isinstance(reason, str) else "",
        )
