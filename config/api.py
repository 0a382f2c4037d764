"""DRF's exception handler: whatever is foreseen becomes a problem (RFC 9457)."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import DatabaseError, InterfaceError
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.serializers import as_serializer_error
from rest_framework.views import set_rollback

from config.errors import ANSWERS, Answer
from config.problems import OUTAGE, foreign_answer, problem
from seckill.transient import is_transient

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Told:
    """How an error is told: its answer, what is particular to this one, and further headers."""

    answer: Answer
    extras: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)


def told(error: Exception) -> Told | None:
    """Find how an error is told; None for what nobody foresaw. The one rule for every door of the API."""
    if isinstance(error, InterfaceError) or (isinstance(error, DatabaseError) and is_transient(error)):
        logger.warning("answered 503: %s", error)
        return Told(answer=OUTAGE, extras={})
    for kind in type(error).__mro__:
        if (answer := ANSWERS.get(kind)) is not None:
            return Told(answer=answer, extras=answer.extras(error))
    if isinstance(error, Http404):
        error = exceptions.NotFound()
    elif isinstance(error, PermissionDenied):
        error = exceptions.PermissionDenied()
    elif isinstance(error, ValidationError):
        error = exceptions.ValidationError(as_serializer_error(error))
    return _of_drf(error) if isinstance(error, exceptions.APIException) else None


def problem_response(error: Exception, context: dict[str, Any]) -> Response | None:
    """Turn an error into its problem; what nobody foresaw is raised, logged and answered with a bare 500."""
    del context
    found = told(error)
    if found is None:
        return None
    set_rollback()
    response = problem(found.answer, found.extras)
    for name, value in found.headers.items():
        response[name] = value
    return response


def _of_drf(error: exceptions.APIException) -> Told:
    answer = foreign_answer(error.status_code)
    wait = getattr(error, "wait", None)
    if answer.status is HTTPStatus.TOO_MANY_REQUESTS and wait is not None:
        answer = replace(answer, retry_after_seconds=max(1, round(wait)))
    header = getattr(error, "auth_header", None)
    return Told(answer=answer, extras=_facts(error), headers={"WWW-Authenticate": header} if header else {})


def _facts(error: exceptions.APIException) -> dict[str, Any]:
    """Say what is wrong: ``detail`` as one sentence, ``errors`` by the name of the field."""
    if not isinstance(error, exceptions.ValidationError):
        return {"detail": str(error.detail)}
    if isinstance(error.detail, dict):
        return {"errors": error.detail}
    return {"errors": {"non_field_errors": error.detail}}
