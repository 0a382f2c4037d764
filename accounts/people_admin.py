"""Admin of the accounts: found by the beginning of their name, of a million as of ten; shut, never deleted."""

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.http import HttpRequest
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from rest.desk import DeskAdmin, LargeDeskAdmin

admin.site.unregister(User)
admin.site.unregister(Group)


@admin.register(User)
class PeopleAdmin(LargeDeskAdmin, UserAdmin[User]):
    """Buyers and staff. What an account has bought stays, and so does the account: it is made inactive instead."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ["username", "email", "is_staff", "is_active", "date_joined"]
    list_filter = ["is_staff", "groups"]
    search_fields = ["^username", "=email"]
    ordering = ["username"]
    sortable_by = ["username"]
    # The two boxes side by side are wider than a phone.
    filter_horizontal = []
    autocomplete_fields = ["groups"]

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """No account is deleted by hand."""
        return False


@admin.register(Group)
class GroupPage(DeskAdmin, GroupAdmin):
    """Roles: what the accounts of a group may do."""

    filter_horizontal = []
