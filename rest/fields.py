"""Fields with one meaning each: what merely looks like a number or a text is refused."""

import re
from datetime import datetime
from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _
from django_stubs_ext import StrOrPromise
from rest_framework import serializers

_DIGITS = re.compile(r"0|[1-9][0-9]{0,17}", re.ASCII)

# What an instant ends with.
_OFFSET = re.compile(r"[0-9](Z|[+-][0-9]{2}:[0-9]{2})\Z", re.ASCII)
INSTANT_LENGTH_MAX = 40


class WholeNumberField(serializers.IntegerField):
    """A JSON integer, and nothing that merely looks like one: 1.0, "1", true are refused."""

    def to_internal_value(self, data: Any) -> int:
        """Return the integer or raise ``ValidationError``."""
        if type(data) is not int:
            self.fail("invalid")
        return super().to_internal_value(data)


class DigitsField(serializers.IntegerField):
    """A whole number in a query string: plain ASCII digits, no sign, no space."""

    def to_internal_value(self, data: Any) -> int:
        """Return the integer or raise ``ValidationError``."""
        if _DIGITS.fullmatch(str(data)) is None:
            self.fail("invalid")
        return super().to_internal_value(data)


class TextField(serializers.CharField):
    """A JSON string; DRF's own field takes numbers for strings as well."""

    def to_internal_value(self, data: Any) -> str:
        """Return the string or raise ``ValidationError``."""
        if type(data) is not str:
            self.fail("invalid")
        return super().to_internal_value(data)


class YesNoField(serializers.BooleanField):
    """A JSON true or false; DRF's own field takes "yes", 1 and "off" as well."""

    def to_internal_value(self, data: Any) -> bool:
        """Return the value or raise ``ValidationError``."""
        if type(data) is not bool:
            self.fail("invalid", input=data)
        return data


class ChoiceField(serializers.ChoiceField):
    """One of some words; DRF's own says a wrong one back, which fails for text that is no Unicode."""

    default_error_messages: ClassVar[dict[str, StrOrPromise]] = {
        "invalid_choice": _("This is none of the words to choose from.")
    }


class InstantField(serializers.DateTimeField):
    """An instant with its offset, as ``datetime.isoformat`` writes it: one spelling in the whole API."""

    def to_internal_value(self, value: Any) -> datetime:
        """Return the instant or raise ``ValidationError``; without an offset nobody knows which one is meant."""
        if type(value) is not str or len(value) > INSTANT_LENGTH_MAX or _OFFSET.search(value) is None:
            self.fail("invalid", format="2026-06-18T20:00:00+08:00")
        return super().to_internal_value(value)

    def to_representation(self, value: datetime) -> str:
        """Return the text."""
        return value.isoformat()
