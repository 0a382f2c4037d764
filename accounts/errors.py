"""What can go wrong with who is asking."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


class AccountError(Exception):
    """Base of all errors of the accounts."""


class Blocked(AccountError):
    """Raised when an account or its address is on the block list."""


class WrongCredentials(AccountError):
    """Raised when name and password, or an external code, belong to no active account."""


class TokenInvalid(AccountError):
    """Raised for a refresh token that is no token, is too old, was used or was revoked."""


class LockedOut(AccountError):
    """Raised after too many wrong passwords for one name from one address."""


class ExternalLoginOff(AccountError):
    """Raised when this shop knows no log-in service outside."""


@dataclass
class RegistrationRefused(AccountError):
    """Raised when no account can be made of what was given; ``errors`` are texts by field."""

    errors: Mapping[str, Sequence[str]]
