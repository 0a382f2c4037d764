"""URLs of the project."""

from csp.decorators import csp_update
from django.conf import settings
from django.contrib import admin
from django.urls import include, path
from django.views.i18n import set_language
from drf_spectacular.views import SpectacularRedocView, SpectacularSwaggerSplitView

from accounts.pages import counted
from config.documents import SchemaView, redoc_script
from seckill.explain_pages import explain_page
from seckill.inbox_pages import inbox_page

# The readers of the schema style themselves and search in a worker; they show nothing of anybody.
for_readers = csp_update({"style-src": ["'unsafe-inline'"], "worker-src": ["blob:"]})
swagger_ui = for_readers(SpectacularSwaggerSplitView.as_view(url_name="schema"))
redoc = for_readers(SpectacularRedocView.as_view(url_name="schema"))

urlpatterns = [
    # The admin's own log-in guesses passwords like the other one, so it is counted like it.
    path("admin/login/", counted("login")(admin.site.login)),
    path("admin/monitor/", include("seckill.monitor_urls")),
    path("admin/sales/", include("seckill.sale_urls")),
    path("admin/audit/", include("seckill.audit_urls")),
    path("admin/explain/", explain_page, name="desk_explain"),
    path("admin/inbox/", inbox_page, name="desk_inbox"),
    path("admin/", admin.site.urls),
    path("api/v1/", include("rest.urls")),
    path("", include("seckill.pages_urls")),
    path("language/", set_language, name="set_language"),
    path("accounts/", include("accounts.pages_urls")),
    path("api/v1/", include("accounts.urls")),
    path("api/v1/", include("inventory.urls")),
    path("api/v1/", include("seckill.urls")),
    path("api/v1/", include("orders.urls")),
    path("api/v1/schema/", SchemaView.as_view(), name="schema"),
    path("api/v1/docs/", swagger_ui, name="swagger-ui"),
    path("api/v1/redoc/", redoc, name="redoc"),
    path("api/v1/redoc/bundles/redoc.standalone.js", redoc_script, name="redoc-script"),
]

if settings.SANDBOX:
    urlpatterns.append(path("sandbox/", include("orders.providers.sandbox.urls")))
