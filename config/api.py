"""DRF's exception handler: whatever is foreseen becomes a problem (RFC 9457)."""

import logging
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import DatabaseError, InterfaceError
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.serializers import as_serializer_error
from rest_framework.views import set_rollback

from config.errors import ANSWERS
from config.problems import OUTAGE, foreign_answer, problem
from seckill.transient import is_transient

logger = logging.getLogger(__name__)


def problem_response(error: Exception, context: dict[str, Any]) -> Response | None:
    """Turn an error into its problem; what nobody foresaw is raised, logged and answered with a bare 500."""
    del context
    if isinstance(error, InterfaceError) or (isinstance(error, DatabaseError) and is_transient(error)):
        logger.warning("answered 503: %s", error)
        set_rollback()
        return problem(OUTAGE, {})
    for kind in type(error).__mro__:
        if (answer := ANSWERS.get(kind)) is not None:
            set_rollback()
            return problem(answer, answer.extras(error))
    if isinstance(error, Http404):
        error = exceptions.NotFound()
    elif isinstance(error, PermissionDenied):
        error = exceptions.PermissionDenied()
    elif isinstance(error, ValidationError):
        error = exceptions.ValidationError(as_serializer_error(error))
    if not isinstance(error, exceptions.APIException):
        return None
    set_rollback()
    return _of_drf(error)


def _of_drf(error: exceptions.APIException) -> Response:
    answer = foreign_answer(error.status_code)
    wait = getattr(error, "wait", None)
    if answer.status is HTTPStatus.TOO_MANY_REQUESTS and wait is not None:
        answer = replace(answer, retry_after_seconds=max(1, round(wait)))
    response = problem(answer, _facts(error))
    if header := getattr(error, "auth_header", None):
        response["WWW-Authenticate"] = header
    return response


def _facts(error: exceptions.APIException) -> dict[str, Any]:
    """Say what is wrong: ``detail`` as one sentence, ``errors`` by the name of the field."""
    if not isinstance(error, exceptions.ValidationError):
        return {"detail": str(error.detail)}
    if isinstance(error.detail, dict):
        return {"errors": error.detail}
    return {"errors": {"non_field_errors": error.detail}}
