"""URLs of the monitor, below the admin."""

from django.urls import path

from seckill import monitor_pages

urlpatterns = [
    path("", monitor_pages.monitor_list, name="desk_monitor"),
    path("stages.json", monitor_pages.monitor_stages, name="desk_monitor_stages"),
    path("<int:sale_id>/", monitor_pages.monitor_sale, name="desk_monitor_sale"),
    path("<int:sale_id>/now.json", monitor_pages.monitor_now, name="desk_monitor_now"),
    path("<int:sale_id>/history.json", monitor_pages.monitor_history, name="desk_monitor_history"),
]
