"""People in the roles of the shop."""

from itertools import count

from django.contrib.auth.models import Group, User
from django.test import Client

from accounts.roles import NAMES, set_roles
from tests.support.api import session_of

_numbers = count(1)


def in_role(role: str) -> User:
    """Make somebody of the staff in a role; a buyer is no staff."""
    for name in NAMES:
        Group.objects.get_or_create(name=name)
    set_roles(using="default")
    user = User.objects.create_user(f"{role}-{next(_numbers)}", is_staff=role != "buyer")
    user.groups.add(Group.objects.get(name=role))
    return user


def browser_of(role: str) -> Client:
    """The browser of somebody in a role."""
    return session_of(in_role(role))
