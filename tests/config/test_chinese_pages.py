"""A Chinese page of the desk has no English on it, but for what people typed and what machines are called."""

import re
from html.parser import HTMLParser

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import translation

from seckill.advice import ADVICE
from tests.browser.test_desk_looks import pages_of, shop_at_night
from tests.support.api import session_of

# Words that people typed into this shop, and what stands in every language as it is.
TYPED = (
    # Permissions are rows that Django writes in English; scheduled tasks have one name everywhere.
    " | Can ",
    "seckill: ",
    "orders: ",
    "accounts: ",
    # The note of an event of an order stays as it was written.
    "paid by sandbox",
    "the queue is long",
    "two were broken",
    "a box was found",
    "the order was closed",
)
SILENT = {"script", "style", "template", "code", "pre", "title"}
# An English word or two may be a name; three in a row, or one that the catalogue has in Chinese, are prose.
PROSE = re.compile(r"[A-Za-z][a-z']+(?: [a-z][a-z']*){2,}")


class Texts(HTMLParser):
    """Collects what can be read on a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what is silent, and what an element says by its attributes."""
        if tag in SILENT:
            self._inside.append(tag)
        self.found += [text for name, text in attrs if name in {"placeholder", "aria-label", "title", "alt"} and text]

    def handle_endtag(self, tag: str) -> None:
        """Leave what was silent."""
        if self._inside and tag == self._inside[-1]:
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        """Keep what is not."""
        if not self._inside and data.strip():
            self.found.append(" ".join(data.split()))


def english_on(html: str) -> set[str]:
    reader = Texts()
    reader.feed(html)
    texts = {text for text in reader.found if PROSE.search(text)}
    return {text for text in texts if not any(words.lower() in text.lower() for words in TYPED)}


def lists_and_rows() -> list[str]:
    found = []
    for model in admin.site._registry:
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        found.append(reverse(f"{name}_changelist"))
        found += [reverse(f"{name}_change", args=[row.pk]) for row in model._default_manager.order_by("-pk")[:1]]
    return found


def chinese() -> Client:
    client = session_of(User.objects.create_superuser("owner"))
    client.defaults["HTTP_ACCEPT_LANGUAGE"] = "zh-CN,zh"
    return client


# What is called the same in every language, and what no page shows.
SAME_EVERYWHERE = {"ID", "SKU", "HTTP Accept", "GET Data", "POST Data", "Task Name"}
NOT_SHOWN = {"cursor", "progress", "told count", "told units", "open key"}


def test_every_column_of_the_desk_has_a_chinese_name() -> None:
    with translation.override("zh-hans"):
        names = {str(f.verbose_name) for model in admin.site._registry for f in model._meta.concrete_fields}
        names |= {str(model._meta.verbose_name) for model in admin.site._registry}
    assert {name for name in names if name.isascii()} == SAME_EVERYWHERE | NOT_SHOWN


@pytest.mark.slow
def test_no_page_of_the_desk_speaks_english() -> None:
    client, shop = chinese(), shop_at_night()
    english = {}
    for path in [*pages_of(shop).values(), *lists_and_rows()]:
        answer = client.get(path)
        assert answer.status_code == 200, path
        if found := english_on(answer.content.decode()):
            english[path] = found
    assert english == {}


@pytest.mark.slow
def test_the_test_finds_english() -> None:
    """The control: the same pages in English are full of it."""
    shop = shop_at_night()
    client = session_of(User.objects.create_superuser("owner"))
    html = client.get(reverse("admin:seckill_incident_changelist")).content.decode()
    assert str(ADVICE["phantom"].what) in english_on(html)
    assert english_on(client.get(reverse("desk_sale_action", args=[shop.sale.pk, "end"])).content.decode())
