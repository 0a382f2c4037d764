"""URLs of the flash sales, below ``/api/v1/``."""

from django.urls import path

from seckill import api, catalogue_api, changes_api, operators_api

urlpatterns = [
    path("operators/sales/<int:sale_id>/preheat/", operators_api.PreheatView.as_view(), name="operators-preheat"),
    path("operators/sales/<int:sale_id>/withdraw/", changes_api.WithdrawView.as_view(), name="operators-withdraw"),
    path("operators/item-adjustments/", changes_api.ItemAdjustmentsView.as_view(), name="operators-item-adjustments"),
    path(
        "operators/item-adjustments/<int:change_id>/approve/",
        changes_api.ApproveItemAdjustmentView.as_view(),
        name="operators-item-adjustment-approve",
    ),
    path(
        "operators/item-adjustments/<int:change_id>/reject/",
        changes_api.RejectItemAdjustmentView.as_view(),
        name="operators-item-adjustment-reject",
    ),
    path("operators/window-changes/", changes_api.WindowChangesView.as_view(), name="operators-window-changes"),
    path(
        "operators/window-changes/<int:change_id>/approve/",
        changes_api.ApproveWindowChangeView.as_view(),
        name="operators-window-change-approve",
    ),
    path(
        "operators/window-changes/<int:change_id>/reject/",
        changes_api.RejectWindowChangeView.as_view(),
        name="operators-window-change-reject",
    ),
    path("operators/items/<int:item_id>/pause/", operators_api.PauseView.as_view(), name="operators-pause"),
    path("operators/items/<int:item_id>/resume/", operators_api.ResumeView.as_view(), name="operators-resume"),
    path("operators/items/<int:item_id>/audit/", operators_api.AuditView.as_view(), name="operators-audit"),
    path("operators/pools/<int:pool_id>/reconcile/", operators_api.ReconcileView.as_view(), name="operators-reconcile"),
    path("sales/", catalogue_api.SaleListView.as_view(), name="sales"),
    path("sales/<int:sale_id>/", catalogue_api.SaleDetailView.as_view(), name="sale"),
    path("items/<int:item_id>/challenge/", api.ChallengeView.as_view(), name="challenge"),
    path("items/<int:item_id>/ticket/", api.TicketView.as_view(), name="ticket"),
    path("purchases/", api.PurchasesView.as_view(), name="purchase"),
    path("purchases/<str:order_no>/", api.PurchaseStatusView.as_view(), name="purchase-status"),
]
