"""A visitor of the shop with a browser of his own, and what he sees of it."""

from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page

SCREENSHOTS = Path(__file__).resolve().parent.parent.parent / "var" / "screenshots"
PHONE = {"width": 360, "height": 740}
DESKTOP = {"width": 1280, "height": 900}


class Visitor:
    """Somebody with a browser; `errors` are what its console has complained of, but for calls that found nobody."""

    def __init__(self, *, chromium: Browser, url: str) -> None:
        self._chromium = chromium
        self._contexts: list[BrowserContext] = []
        self.url = url
        self.errors: list[str] = []

    def open(self, path: str, *, buyer: User | None = None, language: str = "en-US", **options: Any) -> Page:
        """Open a page in a browser of its own, logged in as a buyer if there is one."""
        context = self._chromium.new_context(
            **{"viewport": PHONE, "locale": language, "timezone_id": "Asia/Shanghai", **options}
        )
        context.set_default_timeout(10_000)
        self._contexts.append(context)
        if buyer is not None:
            context.add_cookies([self._session(buyer)])
        page = context.new_page()
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda message: self._hear(message.type, message.text))
        page.goto(self.url + path)
        return page

    def leave(self) -> None:
        """Close all; nothing may have gone wrong in any page."""
        for context in self._contexts:
            context.close()
        assert self.errors == []

    def _hear(self, kind: str, text: str) -> None:
        # The browser itself notes each answer that is no 2xx, and each lost connection.
        if kind == "error" and not text.startswith("Failed to load resource"):
            self.errors.append(text)

    def _session(self, buyer: User) -> Any:
        client = Client()
        client.force_login(buyer)
        value = client.cookies[settings.SESSION_COOKIE_NAME].value
        host = urlparse(self.url).hostname
        return {"name": settings.SESSION_COOKIE_NAME, "value": value, "domain": host, "path": "/"}


def shoot(page: Page, name: str) -> None:
    """Keep a picture of the page under var/screenshots."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)
