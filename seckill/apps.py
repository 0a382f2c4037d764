"""App configuration of the flash sales."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class SeckillConfig(AppConfig):
    """Upper layer: imports orders and inventory."""

    name = "seckill"
    verbose_name = _("Flash sales")
