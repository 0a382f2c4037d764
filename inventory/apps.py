"""App configuration of the inventory."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class InventoryConfig(AppConfig):
    """Bottom layer: imports neither orders nor seckill."""

    name = "inventory"
    verbose_name = _("Inventory")
