"""Admin of the accounts: the block list."""

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.translation import gettext as _

from accounts import actions_admin, people_admin  # noqa: F401  they register their pages
from accounts.blocks import network_of
from accounts.models import Block, ExternalIdentity
from rest.desk import LargeDeskAdmin


class BlockForm(forms.ModelForm[Block]):
    """One entry: an account or a network, never both."""

    class Meta:
        model = Block
        fields = ("account", "network", "reason", "until")

    def clean_network(self) -> str:
        """Bring the network into its one form."""
        text = self.cleaned_data["network"]
        try:
            return network_of(text) if text else ""
        except ValueError as error:
            raise ValidationError(_("This is neither an address nor a network.")) from error


@admin.register(Block)
class BlockAdmin(LargeDeskAdmin):
    """Accounts that get no new ticket, and networks that get no ticket, account or log-in; within two seconds.

    A blocked account may still log in: it may have something to pay for. Tickets issued before stay valid.
    """

    form = BlockForm
    reason_field = "reason"
    list_display = ["__str__", "reason", "until", "created_by", "created_at"]
    list_select_related = ["account", "created_by"]
    search_fields = ["account__username", "network", "reason"]
    autocomplete_fields = ["account"]
    ordering = ["-id"]

    def save_model(self, request: HttpRequest, obj: Block, form: Any, change: bool) -> None:  # noqa: FBT001  Django's
        """Note who has made the entry."""
        if not change:
            obj.created_by_id = request.user.pk
        super().save_model(request, obj, form, change)


@admin.register(ExternalIdentity)
class ExternalIdentityAdmin(LargeDeskAdmin):
    """Which account a log-in service's subject is; only read, and deleted to part the two."""

    list_display = ["provider", "subject", "account", "created_at"]
    list_select_related = ["account"]
    search_fields = ["subject", "account__username"]
    ordering = ["-id"]

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Made by the first log-in."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Never given to another account."""
        return False
