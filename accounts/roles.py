"""The roles of the shop's people, as groups: what each may do is written here and set after every ``migrate``.

A group of another name is the deployer's own and is left alone. Rights reach the database after migrations, because
that is when Django writes the rows of its permissions; so a permission that a later release brings is in its groups as
soon as that release has migrated, without a migration of its own. See "Roles" in docs/design.md.
"""

from typing import Any

from django.apps import AppConfig
from django.apps import apps as registry
from django.contrib.auth.management import create_permissions

BUYER, OPERATOR, APPROVER, AUDITOR = "buyer", "operator", "approver", "auditor"
NAMES = (BUYER, OPERATOR, APPROVER, AUDITOR)

# Whoever works at the desk sees all of these.
SEEN_APPS = frozenset({"accounts", "inventory", "orders", "seckill"})
SEEN = frozenset(
    {"auth.view_user", "auth.view_group", "axes.view_accessattempt", "django_celery_beat.view_periodictask"}
)

OPERATORS = frozenset(
    {
        "accounts.add_block",
        "accounts.change_block",
        "accounts.delete_block",
        "accounts.delete_externalidentity",
        "axes.delete_accessattempt",
        "inventory.add_product",
        "inventory.change_product",
        "inventory.delete_product",
        "inventory.add_sku",
        "inventory.change_sku",
        "inventory.delete_sku",
        "inventory.add_stockadjustment",
        "orders.honour_payment",
        "orders.refund_payment",
        "seckill.add_flashsale",
        "seckill.change_flashsale",
        "seckill.delete_flashsale",
        "seckill.add_salepool",
        "seckill.change_salepool",
        "seckill.delete_salepool",
        "seckill.add_saleitem",
        "seckill.change_saleitem",
        "seckill.delete_saleitem",
        "seckill.add_itemadjustment",
        "seckill.add_windowchange",
        "seckill.decide_deadletter",
        "seckill.resend_alertdelivery",
    }
)
APPROVERS = frozenset(
    {"inventory.approve_stockadjustment", "seckill.approve_itemadjustment", "seckill.approve_windowchange"}
)
AUDITORS = frozenset({"actions.view_actionentry"})

GRANTED: dict[str, frozenset[str]] = {BUYER: frozenset(), OPERATOR: OPERATORS, APPROVER: APPROVERS, AUDITOR: AUDITORS}


def names_of(*, role: str, known: frozenset[str]) -> frozenset[str]:
    """The permissions of a role among those that there are."""
    if role == BUYER:
        return frozenset()
    views = {
        name for name in known if name.partition(".")[0] in SEEN_APPS and name.partition(".")[2].startswith("view_")
    }
    return (frozenset(views) | SEEN | GRANTED[role]) & known


def set_roles(*, using: str, apps: Any = registry, **_: object) -> None:
    """Give each role's group, if it is there, exactly its permissions, whose own rows are made first."""
    try:
        groups, permissions = apps.get_model("auth", "Group"), apps.get_model("auth", "Permission")
    except LookupError:
        return  # Migrated back to before there were accounts.
    for app in registry.get_app_configs():
        _create_permissions(app, using=using, apps=apps)
    keys = {
        f"{app}.{codename}": key
        for key, app, codename in permissions.objects.using(using).values_list(
            "pk", "content_type__app_label", "codename"
        )
    }
    for group in groups.objects.using(using).filter(name__in=NAMES):
        names = names_of(role=group.name, known=frozenset(keys))
        group.permissions.set([keys[name] for name in names])


def _create_permissions(app: AppConfig, *, using: str, apps: Any) -> None:
    create_permissions(app, verbosity=0, interactive=False, using=using, apps=apps)
