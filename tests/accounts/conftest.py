"""Fixtures of the accounts' tests."""

import pytest
from pytest_django import Settings

from accounts.tasks import mail_reset


@pytest.fixture(autouse=True)
def quick_passwords(settings: Settings) -> None:
    """Hash passwords quickly: what is tested is who gets in, not how long guessing takes."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def quick_mails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send at once what a worker sends."""
    monkeypatch.setattr(mail_reset, "apply_async", lambda args, kwargs, **_: mail_reset(*args, **kwargs))
