"""URLs of the sale desk, below the admin."""

from django.urls import path

from seckill import item_actions, sale_actions, sale_pages, window_page

urlpatterns = [
    path("new/", sale_pages.new_sale, name="desk_sale_new"),
    path("items.csv", sale_pages.import_template, name="desk_sale_template"),
    path("<int:sale_id>/", sale_pages.sale_page, name="desk_sale"),
    path("<int:sale_id>/preheat/", sale_pages.preheat_page, name="desk_sale_preheat"),
    path("<int:sale_id>/import/", sale_pages.import_page, name="desk_sale_import"),
    path("<int:sale_id>/window/", window_page.window_page, name="desk_sale_window"),
    path("<int:sale_id>/items/<int:item_id>/<slug:name>/", item_actions.item_page, name="desk_item_action"),
    path("<int:sale_id>/<slug:name>/", sale_actions.action_page, name="desk_sale_action"),
]
