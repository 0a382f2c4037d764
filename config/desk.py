"""How the operators' desk looks and what its side bar holds, by the words of the shop; read by unfold as ``UNFOLD``."""

from typing import Any

from django.utils.translation import gettext_lazy as _

INCIDENTS, LETTERS, REFUNDS, INBOX = _("Incidents"), _("Dead letters"), _("Refunds due"), _("Inbox")
# Whoever may do anything about any kind of change by hand.
INBOX_NEEDS = "|".join(
    f"{app}.{action}_{table}"
    for app, table in (("seckill", "itemadjustment"), ("seckill", "windowchange"), ("inventory", "stockadjustment"))
    for action in ("view", "add", "approve")
)

# Group, and its pages: title, icon, URL name (with a query), and what one needs for it: a permission, or one of some.
GROUPS: list[tuple[Any, list[tuple[Any, str, str, str]]]] = [
    (
        _("Sales"),
        [
            (_("Overview"), "dashboard", "admin:index", ""),
            (_("Live monitor"), "monitoring", "desk_monitor", "seckill.view_flashsale"),
            (_("What became of …"), "support_agent", "desk_explain", "orders.view_order"),
            (_("New sale"), "add_circle", "desk_sale_new", "seckill.add_flashsale"),
            (_("Sales"), "bolt", "admin:seckill_flashsale_changelist", "seckill.view_flashsale"),
            (_("Pools"), "workspaces", "admin:seckill_salepool_changelist", "seckill.view_salepool"),
            (_("Items"), "sell", "admin:seckill_saleitem_changelist", "seckill.view_saleitem"),
            (INBOX, "inbox", "desk_inbox", INBOX_NEEDS),
            (_("Reservations"), "receipt", "admin:seckill_reservation_changelist", "seckill.view_reservation"),
        ],
    ),
    (
        _("Stock"),
        [
            (_("Products"), "category", "admin:inventory_product_changelist", "inventory.view_product"),
            (_("SKUs"), "barcode", "admin:inventory_sku_changelist", "inventory.view_sku"),
            (_("Warehouse"), "warehouse", "admin:inventory_stock_changelist", "inventory.view_stock"),
            (_("Ledger"), "menu_book", "admin:inventory_stockmovement_changelist", "inventory.view_stockmovement"),
        ],
    ),
    (
        _("Orders and money"),
        [
            (_("Orders"), "shopping_bag", "admin:orders_order_changelist", "orders.view_order"),
            (_("Payments"), "payments", "admin:orders_payment_changelist", "orders.view_payment"),
            (
                REFUNDS,
                "currency_exchange",
                "admin:orders_payment_changelist?state__exact=REFUND_DUE",
                "orders.view_payment",
            ),
            (_("Begun payments"), "hourglass", "admin:orders_paymentattempt_changelist", "orders.view_paymentattempt"),
            (_("Refunds"), "undo", "admin:orders_refund_changelist", "orders.view_refund"),
            (_("Honoured payments"), "handshake", "admin:orders_honour_changelist", "orders.view_honour"),
        ],
    ),
    (
        _("Trouble"),
        [
            (INCIDENTS, "warning", "admin:seckill_incident_changelist", "seckill.view_incident"),
            (LETTERS, "mail_off", "admin:seckill_deadletter_changelist", "seckill.view_deadletter"),
            (_("Alerts"), "notifications", "admin:seckill_alert_changelist", "seckill.view_alert"),
            (_("Deliveries"), "send", "admin:seckill_alertdelivery_changelist", "seckill.view_alertdelivery"),
        ],
    ),
    (
        _("People"),
        [
            (_("Accounts"), "person", "admin:auth_user_changelist", "auth.view_user"),
            (_("Groups"), "group", "admin:auth_group_changelist", "auth.view_group"),
            (_("Blocks"), "block", "admin:accounts_block_changelist", "accounts.view_block"),
            (
                _("Log-ins"),
                "link",
                "admin:accounts_externalidentity_changelist",
                "accounts.view_externalidentity",
            ),
            (_("Wrong passwords"), "lock", "admin:axes_accessattempt_changelist", "axes.view_accessattempt"),
        ],
    ),
    (
        _("System"),
        [
            (_("Action log"), "history", "admin:actions_actionentry_changelist", "actions.view_actionentry"),
            (
                _("Reconciliations"),
                "balance",
                "admin:seckill_reconciliationrun_changelist",
                "seckill.view_reconciliationrun",
            ),
            (_("Repairs"), "build", "admin:seckill_repair_changelist", "seckill.view_repair"),
            (_("Rebuilds"), "restart_alt", "admin:seckill_rebuildrun_changelist", "seckill.view_rebuildrun"),
            (_("Archives"), "archive", "admin:seckill_archiverun_changelist", "seckill.view_archiverun"),
            (_("Archived buyers"), "inventory_2", "admin:seckill_buyerarchive_changelist", "seckill.view_buyerarchive"),
            (
                _("Scheduled tasks"),
                "event_repeat",
                "admin:django_celery_beat_periodictask_changelist",
                "django_celery_beat.view_periodictask",
            ),
        ],
    ),
]


UNFOLD: dict[str, Any] = {
    "SITE_TITLE": _("Seckill"),
    "SITE_HEADER": _("Seckill"),
    "SITE_SUBHEADER": _("The operator's desk"),
    "SITE_SYMBOL": "bolt",
    "SITE_URL": "/",
    "DASHBOARD_CALLBACK": "seckill.overview.overview",
    "SHOW_HISTORY": True,
    "SHOW_VIEW_ON_SITE": False,
    "SHOW_LANGUAGES": True,
    "BORDER_RADIUS": "6px",
    "SIDEBAR": {"show_search": True, "navigation": "config.navigation.navigation"},
}
