"""Columns of the desk whose words stand in a coloured label."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from django_stubs_ext import StrOrPromise
from unfold.decorators import display

Column = TypeVar("Column", bound=Callable[..., tuple[str, str]])


def coloured(*, description: StrOrPromise, colours: Mapping[str, str]) -> Callable[[Column], Column]:
    """Make a column of a function that returns a key of ``colours`` and the words to show.

    Colours are unfold's: danger, warning, success, info, primary.
    """

    def decorate(function: Column) -> Column:
        shown: Any = display(description=description, label=dict(colours))
        column: Column = shown(function)
        return column

    return decorate
