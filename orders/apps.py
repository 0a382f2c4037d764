"""App configuration of the orders."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class OrdersConfig(AppConfig):
    """Middle layer: imports inventory, never seckill."""

    name = "orders"
    verbose_name = _("Orders")
