"""The OpenAPI schema: what drf-spectacular cannot know by itself, above all the problems of each call."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from rest_framework import serializers

from config.errors import ANSWERS, Answer
from config.problems import CONTENT_TYPE, FOREIGN, OUTAGE
from rest.fields import InstantField

# What may meet any call: another format asked for, too many calls, a server behind that is away.
_ALWAYS = (HTTPStatus.NOT_ACCEPTABLE, HTTPStatus.TOO_MANY_REQUESTS)
_WITH_BODY = (HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNSUPPORTED_MEDIA_TYPE)


class LiveOrderOutput(serializers.Serializer[None]):
    """A reservation that counts for the limit."""

    number = serializers.CharField()
    state = serializers.CharField(help_text="The order's state, or `queued` while there is no order yet.")
    pay_by = InstantField(allow_null=True)


class ProblemOutput(serializers.Serializer[None]):
    """A refusal or failure (RFC 9457). Programs go by ``code``; some codes bring facts of their own besides."""

    type = serializers.CharField(help_text="`/problems/` and the code.")
    title = serializers.CharField(help_text="For people, in the language asked for.")
    status = serializers.IntegerField()
    code = serializers.CharField(help_text="Stable.")
    detail = serializers.CharField(required=False, help_text="What exactly is wrong.")
    errors = serializers.DictField(  # type: ignore[assignment]  # no attribute: a serializer's fields are taken out
        required=False, help_text="What is wrong, by the name of the field."
    )
    status_url = serializers.CharField(
        required=False,
        help_text="With `sold_out`, `ended` and `ticket_expired` of a purchase: ask there once after a lost reply.",
    )
    units_left = serializers.IntegerField(required=False, help_text="With `not_enough_left`.")
    units_held = serializers.IntegerField(required=False, help_text="With `limit_reached`.")
    orders = LiveOrderOutput(many=True, required=False, help_text="With `limit_reached`: the asker's own.")
    opens_in_ms = serializers.IntegerField(required=False, help_text="With `not_started`.")
    seconds_left = serializers.IntegerField(required=False, help_text="With `not_started`; never too few.")
    state = serializers.CharField(required=False, help_text="With `already_decided`: where the request stands.")
    reason = serializers.CharField(required=False, help_text="With `ticket_denied`.")
    until = InstantField(required=False, allow_null=True, help_text="With `ticket_denied`, if that passes.")


class ProblemsSchema(AutoSchema):
    """Adds to each call the problems it may answer: its own, as its view names them, and DRF's."""

    def get_operation_id(self) -> str:
        """Name the call by its view and method: ``sale_detail_get``."""
        name = type(self.view).__name__.removesuffix("View")
        words = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).strip("_")
        return f"{words}_{self.method.lower()}"

    def get_serializer_name(self, serializer: serializers.Serializer[Any], direction: Any) -> str:
        """Name a body without what tells its class apart from others in the code."""
        return super().get_serializer_name(serializer, direction).removesuffix("Output").removesuffix("Input")

    def _get_response_bodies(self, direction: Any = "response") -> dict[str, Any]:
        bodies: dict[str, Any] = super()._get_response_bodies(direction)
        of_status: dict[int, list[Answer]] = defaultdict(list)
        for answer in self._problems(method=getattr(self.view, self.method.lower())):
            of_status[int(answer.status)].append(answer)
        for status, answers in sorted(of_status.items()):
            bodies[str(status)] = self._problem_response(answers)
        return dict(sorted(bodies.items()))

    def _problems(self, *, method: Any) -> Iterator[Answer]:
        yield from (ANSWERS[kind] for kind in getattr(method, "raises", ()))
        yield OUTAGE
        for status in self._foreign_statuses():
            yield FOREIGN[status]

    def _foreign_statuses(self) -> Iterator[HTTPStatus]:
        yield from _ALWAYS
        if self.method == "POST":
            yield from _WITH_BODY
        elif any(parameter["in"] == "query" for parameter in self._get_parameters()):
            yield HTTPStatus.BAD_REQUEST
        if "{" in self.path:
            yield HTTPStatus.NOT_FOUND
        if self.view.get_permissions():
            yield HTTPStatus.UNAUTHORIZED
            yield HTTPStatus.FORBIDDEN

    def _problem_response(self, answers: Iterable[Answer]) -> dict[str, Any]:
        titles = {answer.code: str(answer.title) for answer in answers}
        problem = self.resolve_serializer(ProblemOutput, "response").ref
        of_codes = {"allOf": [problem, {"type": "object", "properties": {"code": {"enum": sorted(titles)}}}]}
        response: dict[str, Any] = {
            "description": "\n".join(f"- `{code}`: {title}" for code, title in sorted(titles.items())),
            "content": {CONTENT_TYPE: {"schema": of_codes}},
        }
        if any(answer.retry_after_seconds is not None for answer in answers):
            seconds = {"schema": {"type": "integer"}, "description": "Seconds to wait.", "required": True}
            response["headers"] = {"Retry-After": seconds}
        return response


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The session as a security scheme."""

    target_class = "rest.sessions.SessionAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        """Describe it."""
        return {
            "type": "apiKey",
            "in": "cookie",
            "name": "sessionid",
            "description": "A browser's log-in; POST also wants the header X-CSRFToken.",
        }


def without_enum_marks(result: Any, **_kwargs: Any) -> Any:
    """Leave choices where they stand, and take away the marks by which drf-spectacular would collect them."""
    if isinstance(result, dict):
        return {name: without_enum_marks(part) for name, part in result.items() if name != "x-spec-enum-id"}
    return [without_enum_marks(part) for part in result] if isinstance(result, list) else result
