"""Fields with one meaning: JSON types as they are, digits as digits."""

from datetime import UTC, datetime
from typing import Any

import pytest
from rest_framework.exceptions import ValidationError
from rest_framework.fields import Field

from rest.fields import DigitsField, InstantField, TextField, WholeNumberField, YesNoField

REFUSED: list[tuple[Field[Any, Any, Any, Any], list[Any]]] = [
    (WholeNumberField(), [1.0, "1", True, None, [1]]),
    (TextField(), [1, True, None, ["x"], 1.5]),
    (YesNoField(), ["true", 1, 0, "on", None, []]),
    (
        InstantField(),
        [
            "2026-06-18",
            "2026-06-18T20:00:00",
            "soon",
            20260618,
            1.0,
            None,
            "20:00Z",
            f"2026-06-18T20:00:00.{'0' * 40}Z",
        ],
    ),
    (DigitsField(), ["+1", "-1", " 1", "1 ", "１", "٣", "01", "1.0", "1_0", "", "9" * 19]),
]


@pytest.mark.parametrize(("field", "values"), REFUSED)
def test_what_only_looks_like_it(field: Field[Any, Any, Any, Any], values: list[Any]) -> None:
    """CASES 38."""
    for value in values:
        with pytest.raises(ValidationError):
            field.run_validation(value)


def test_what_is_it() -> None:
    assert WholeNumberField().run_validation(1) == 1
    assert TextField().run_validation("1") == "1"
    assert YesNoField().run_validation(data=True) is True
    assert DigitsField().run_validation("9" * 18) == 10**18 - 1
    assert DigitsField().run_validation("0") == 0
    noon = datetime(2026, 6, 18, 12, 0, tzinfo=UTC)
    assert InstantField().run_validation("2026-06-18T12:00:00Z") == noon
    assert InstantField().run_validation("2026-06-18T20:00:00+08:00") == noon
