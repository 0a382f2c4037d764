"""Whatever a library says on our pages stands in Chinese there, in its own catalogue or in ours."""

import re
from pathlib import Path

import axes
import pytest
import unfold
from django.utils import translation
from django.utils.translation.template import templatize

# In parts of unfold that no page here uses: its crispy forms, data sets, nested inlines, money.
NOWHERE_HERE = {
    "Add row",
    "Dataset not found. No action performed.",
    "Select currency",
    "You can not create nested object without parent",
}
IN_PYTHON = re.compile(r"""\b_\(\s*(["'])((?:(?!\1)[^\\]|\\.)*)\1\s*\)""")
IN_TEMPLATES = re.compile(r"""\bgettext\(u?(["'])((?:(?!\1)[^\\]|\\.)*)\1\)""")


def words_of(folder: Path) -> set[str]:
    """What is marked to be translated below a folder, but for what stands in packages of its own."""
    found = set()
    for path in folder.rglob("*.*"):
        if "contrib" in path.relative_to(folder).parts or path.suffix not in {".py", ".html"}:
            continue
        text, marked = path.read_text(), IN_PYTHON
        if path.suffix == ".html":
            text, marked = templatize(text), IN_TEMPLATES
        found |= {words.replace("\\'", "'") for _quote, words in marked.findall(text)}
    return found


def test_unfold_speaks_chinese() -> None:
    words = words_of(Path(unfold.__file__).parent)
    assert {"Type to search", "Search apps and models...", "Save"} < words
    with translation.override("zh-hans"):
        assert {word for word in words if translation.gettext(word) == word} == NOWHERE_HERE


@pytest.mark.parametrize(
    "word", ["access attempts", "Attempt Time", "IP Address", "User Agent", "Path", "Failed Logins"]
)
def test_what_axes_says_on_its_page_is_chinese(word: str) -> None:
    assert f'_("{word}")' in (Path(axes.__file__).parent / "models.py").read_text()
    with translation.override("zh-hans"):
        assert translation.gettext(word) != word
