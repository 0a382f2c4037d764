"""Health of a web process: whether it can reach what it needs, asked by load balancers and by the demo."""

from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from seckill.errors import GateUnavailable
from seckill.gate import gate


@require_safe
@never_cache
def health(_request: HttpRequest) -> JsonResponse:
    """Answer 200 when MySQL and the stock Redis answer, else 503 and which does not."""
    parts = {"mysql": _is_mysql_up(), "stock_redis": _is_redis_up()}
    return JsonResponse(parts, status=200 if all(parts.values()) else 503)


def _is_mysql_up() -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return False
    return True


def _is_redis_up() -> bool:
    try:
        gate.ping()
    except GateUnavailable:
        return False
    return True
