"""Problems (RFC 9457): their one form, and the codes of what does not come from the domain."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from django.http import JsonResponse
from django.utils.translation import gettext_lazy as _
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response

from config.errors import Answer

CONTENT_TYPE = "application/problem+json"

OUTAGE = Answer(
    status=HTTPStatus.SERVICE_UNAVAILABLE,
    code="unavailable",
    title=_("The shop is catching its breath. Please repeat in a moment."),
    retry_after_seconds=2,
)

# What Django and DRF say themselves, by status.
FOREIGN: Mapping[HTTPStatus, Answer] = {
    answer.status: answer
    for answer in (
        Answer(status=HTTPStatus.BAD_REQUEST, code="bad_request", title=_("The request has not the right form.")),
        Answer(status=HTTPStatus.UNAUTHORIZED, code="not_authenticated", title=_("Please log in first.")),
        Answer(status=HTTPStatus.FORBIDDEN, code="forbidden", title=_("You may not do that.")),
        Answer(status=HTTPStatus.NOT_FOUND, code="not_found", title=_("There is no such thing here.")),
        Answer(
            status=HTTPStatus.METHOD_NOT_ALLOWED, code="method_not_allowed", title=_("This call has another method.")
        ),
        Answer(status=HTTPStatus.NOT_ACCEPTABLE, code="not_acceptable", title=_("Answers are to be had in JSON only.")),
        Answer(
            status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE, code="too_large", title=_("The body is too long for any call.")
        ),
        Answer(
            status=HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            code="unsupported_media_type",
            title=_("The body must be application/json."),
        ),
        Answer(
            status=HTTPStatus.TOO_MANY_REQUESTS,
            code="throttled",
            title=_("Too many requests. Please wait a moment."),
            retry_after_seconds=1,
        ),
        Answer(
            status=HTTPStatus.INTERNAL_SERVER_ERROR,
            code="internal",
            title=_("Something went wrong on our side; it is logged under the request's id."),
        ),
        OUTAGE,
    )
}


def foreign_answer(status: int) -> Answer:
    """Return the answer of a status; an unknown one counts as its whole class does."""
    known = FOREIGN.get(HTTPStatus(status))
    if known is not None:
        return known
    like = FOREIGN[HTTPStatus.BAD_REQUEST if status < 500 else HTTPStatus.INTERNAL_SERVER_ERROR]
    return Answer(status=HTTPStatus(status), code=like.code, title=like.title)


def problem_body(answer: Answer, extras: Mapping[str, Any]) -> dict[str, Any]:
    """What every problem says, and what this one says besides."""
    return {
        "type": f"/problems/{answer.code}",
        "title": str(answer.title),
        "status": int(answer.status),
        "code": answer.code,
        **extras,
    }


class ProblemResponse(Response):
    """A problem is JSON, also where the view it comes from speaks HTML or YAML."""

    @property
    def rendered_content(self) -> str:
        """Render the body."""
        self["Content-Type"] = CONTENT_TYPE
        rendered: bytes = JSONRenderer().render(self.data)
        return rendered.decode()


def problem(answer: Answer, extras: Mapping[str, Any]) -> Response:
    """Make the answer of a view; never cacheable, with Retry-After where waiting helps."""
    response = ProblemResponse(problem_body(answer, extras), status=answer.status, content_type=CONTENT_TYPE)
    for name, value in problem_headers(answer).items():
        response[name] = value
    return response


def plain_problem(answer: Answer) -> JsonResponse:
    """Make the same answer where no view was reached, or none answered."""
    body = problem_body(answer, {})
    return JsonResponse(body, status=answer.status, content_type=CONTENT_TYPE, headers=problem_headers(answer))


def problem_headers(answer: Answer) -> dict[str, str]:
    """Return what every problem's headers say."""
    headers = {"Cache-Control": "no-store"}
    if answer.retry_after_seconds is not None:
        headers["Retry-After"] = str(answer.retry_after_seconds)
    return headers
