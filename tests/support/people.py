"""People of the shop's staff, with the permissions a test needs."""

from itertools import count

from django.contrib.auth.models import Permission, User

_numbers = count(1)


def person(*codenames: str) -> User:
    """Make an employee with some permissions."""
    user = User.objects.create_user(f"employee-{next(_numbers)}", is_staff=True)
    permissions = list(Permission.objects.filter(codename__in=codenames))
    assert len(permissions) == len(codenames)
    user.user_permissions.set(permissions)
    return user
