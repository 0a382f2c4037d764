"""Admin of the accounts: found by the beginning of their name, of a million as of ten; shut, never deleted."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import User
from django.http import HttpRequest

from rest.large_lists import LargeList

admin.site.unregister(User)


@admin.register(User)
class PeopleAdmin(LargeList, UserAdmin[User]):
    """Buyers and staff. What an account has bought stays, and so does the account: it is made inactive instead."""

    list_display = ["username", "email", "is_staff", "is_active", "date_joined"]
    list_filter = ["is_staff", "groups"]
    search_fields = ["^username", "=email"]
    ordering = ["username"]
    sortable_by = ["username"]

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """No account is deleted by hand."""
        return False
