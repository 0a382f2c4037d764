"""URLs of the sandbox provider; there only with ``SANDBOX=1``."""

from django.urls import path

from orders.providers.sandbox.views import pay_page

urlpatterns = [path("pay/<str:token>/", pay_page, name="sandbox-pay")]
