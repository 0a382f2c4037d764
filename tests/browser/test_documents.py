"""The readers of the API's schema, in a browser: whoever reads it tells nobody else of it."""

from urllib.parse import urlparse

import pytest
from playwright.sync_api import Page, expect

from tests.browser.visitor import DESKTOP, Visitor, shoot


@pytest.mark.parametrize("name", ["docs", "redoc"])
def test_a_reader_asks_nobody_but_the_shop(visitor: Visitor, name: str) -> None:
    """Nothing is fetched from elsewhere, and nothing is tried that the page's own policy has to stop."""
    page: Page = visitor.open("/healthz-nowhere/", viewport=DESKTOP)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{visitor.url}/api/v1/{name}/")
    expect(page.get_by_text("Flash-sale shop").first).to_be_visible()
    expect(page.get_by_text("/api/v1/purchases/").first).to_be_attached()
    page.wait_for_load_state("networkidle")
    shoot(page, f"schema-{name}")
    shop = urlparse(visitor.url).netloc
    assert {urlparse(url).netloc for url in asked if urlparse(url).scheme in {"http", "https", "ws", "wss"}} == {shop}
    assert len(asked) >= 3
