"""Filling in a page's form as a browser does: whatever stands in it is sent back, but for what is changed."""

from html.parser import HTMLParser

BUTTONS = frozenset({"submit", "button", "reset", "image"})


class _Fields(HTMLParser):
    """Collects the fields of all forms of a page that post."""

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[str, str] = {}
        self._is_posting = False
        self._open = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = {name: value or "" for name, value in attrs}
        name, value = told.get("name", ""), told.get("value", "")
        if tag == "form":
            self._is_posting = told.get("method", "").lower() == "post"
        elif not self._is_posting:
            return
        elif tag == "option" and "selected" in told and self._open:
            self.values[self._open] = value
        elif tag in {"select", "textarea"}:
            self._open = name
            if "multiple" not in told:
                self.values[name] = ""
        elif tag == "input" and name and told.get("type") not in BUTTONS and _is_on(told):
            self.values[name] = told.get("value", "on" if told.get("type") == "checkbox" else "")

    def handle_endtag(self, tag: str) -> None:
        if tag in {"select", "textarea"}:
            self._open = ""
        elif tag == "form":
            self._is_posting = False

    def handle_data(self, data: str) -> None:
        if self._open and self.get_starttag_text() and str(self.get_starttag_text()).startswith("<textarea"):
            self.values[self._open] = data.removeprefix("\n")


def _is_on(told: dict[str, str]) -> bool:
    return told.get("type") not in {"checkbox", "radio"} or "checked" in told


def fields_of(html: bytes) -> dict[str, str]:
    """Return what a browser would post if nothing was changed on the page."""
    parser = _Fields()
    parser.feed(html.decode())
    return parser.values
