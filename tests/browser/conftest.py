"""A browser for all tests here, and a shop it can reach; settlement and expiry are driven by the tests themselves."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright
from pytest_django import Settings

from tests.browser.visitor import Visitor
from tests.support.live import live_shop

# Playwright's own loop runs in this thread; Django takes that for asynchronous code.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
NAMES = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--lang=en-US"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of them start a browser."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The Chromium of this machine."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    assert path is not None, "Chromium is missing: bash benchmarks/prepare browser"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=OPTIONS)
        yield browser
        browser.close()


@pytest.fixture
def url(settings: Settings) -> Iterator[str]:
    """Where the shop is."""
    with live_shop() as address:
        settings.PUBLIC_URL = address
        settings.SANDBOX_NOTIFY_URL = f"{address}/api/v1/payments/sandbox/notify/"
        yield address


@pytest.fixture
def visitor(chromium: Browser, url: str) -> Iterator[Visitor]:
    """A visitor on a phone 360 px wide; no page of his may have had an error by the end."""
    visitor = Visitor(chromium=chromium, url=url)
    yield visitor
    visitor.leave()
