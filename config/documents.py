"""The OpenAPI schema as the API serves it, and the script of one of its readers."""

from functools import cache
from pathlib import Path

from django.contrib.staticfiles.finders import find
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from drf_spectacular.views import SpectacularAPIView

from rest.calls import ApiView

REDOC = "drf_spectacular_sidecar/redoc/bundles/redoc.standalone.js"
# The one thing ReDoc fetches from its makers, who would learn who reads what; without it, it shows none.
LOGO, NO_LOGO = "https://cdn.redoc.ly/redoc/logo-mini.svg", "data:,"


class SchemaView(ApiView, SpectacularAPIView):
    """Counted on its own: making it costs as much CPU as a thousand purchases."""

    throttle_scope = "schema"


@require_safe
def redoc_script(_request: HttpRequest) -> HttpResponse:
    """Answer ReDoc's script, as the package has it but for the logo."""
    headers = {"Cache-Control": "public, max-age=3600"}
    return HttpResponse(_redoc(), content_type="text/javascript", headers=headers)


@cache
def _redoc() -> str:
    path = find(REDOC)
    if path is None:
        raise Http404
    return Path(path).read_text().replace(LOGO, NO_LOGO)
