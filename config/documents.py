"""The OpenAPI schema as the API serves it."""

from drf_spectacular.views import SpectacularAPIView

from rest.calls import ApiView


class SchemaView(ApiView, SpectacularAPIView):
    """Counted on its own: making it costs as much CPU as a thousand purchases."""

    throttle_scope = "schema"
