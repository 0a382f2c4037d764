"""Admin of the accounts: found by the beginning of their name, of a million as of ten; shut, never deleted."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.http import HttpRequest
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from rest.desk import DeskAdmin, LargeDeskAdmin
from rest.reasons import AsksWhy

if TYPE_CHECKING:
    PasswordBase = forms.Form
else:
    PasswordBase = AdminPasswordChangeForm

admin.site.unregister(User)
admin.site.unregister(Group)


class PasswordForm(AsksWhy, PasswordBase):
    """Another password for an account, and why it gets one from somebody else."""


class GroupForm(AsksWhy, forms.ModelForm[Group]):
    """A group's rights, and why they are given: also to a new one."""


@admin.register(User)
class PeopleAdmin(LargeDeskAdmin, UserAdmin[User]):
    """Buyers and staff. What an account has bought stays, and so does the account: it is made inactive instead."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = PasswordForm
    change_user_password_template = "desk/change_password.html"  # noqa: S105  a page, not a password
    list_display = ["username", "email", "is_staff", "is_active", "date_joined"]
    list_filter = ["is_staff", "groups"]
    search_fields = ["^username", "=email"]
    ordering = ["username"]
    sortable_by = ["username"]
    # The two boxes side by side are wider than a phone.
    filter_horizontal = []
    autocomplete_fields = ["groups"]

    def user_change_password(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Write the password and the action log: both or neither."""
        with transaction.atomic():
            return super().user_change_password(request, *args, **kwargs)

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """No account is deleted by hand."""
        return False


@admin.register(Group)
class GroupPage(DeskAdmin, GroupAdmin):
    """Roles: what the accounts of a group may do."""

    form = GroupForm
    filter_horizontal = []

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Ask why whoever may change a group; who only looks is asked nothing."""
        may = self.has_change_permission(request, obj) if obj is not None else self.has_add_permission(request)
        return ["name", "permissions", "why"] if may else ["name", "permissions"]
