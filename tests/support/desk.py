"""What the pages of the desk show, read out of their markup."""

import re
from html import unescape


def cells(html: str, column: str) -> list[str]:
    """The texts of a list's column, from the top."""
    found = re.findall(rf"<t[dh][^>]*\bfield-{column}\b[^>]*>(.*?)</t[dh]>", html, re.DOTALL)
    return [" ".join(unescape(re.sub(r"<[^>]*>", " ", cell)).split()) for cell in found]
