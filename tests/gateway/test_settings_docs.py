"""The tables of docs/settings.md agree with what the API accepts for every setting."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rest_framework import serializers

from core.wire.fields import MoneyField
from gateway.serializers import GuardrailsSerializer, SettingsSerializer

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "settings.md"
TYPES = {
    "BooleanField": "boolean",
    "IntegerField": "integer",
    "NumberField": "number",
    "MoneyField": "number",
    "CharField": "string",
    "NameListField": "array of strings",
    "ListField": "array of strings",
    "ChoiceField": "string",
    "GuardrailsSerializer": "object",
}
FIELDS: list[tuple[str, Any]] = [
    *((name, field) for name, field in SettingsSerializer().fields.items() if name not in ("project_id", "warnings")),
    *((f"guardrails.{name}", field) for name, field in GuardrailsSerializer().fields.items()),
]


def bounds(field: Any) -> str:
    if isinstance(field, serializers.ChoiceField):
        return ", ".join(f"`{choice}`" for choice in field.choices)
    if getattr(field, "max_value", None) is not None:
        min_value = 0 if isinstance(field, MoneyField) else field.min_value
        return f"{min_value} to {field.max_value}"
    if getattr(field, "max_length", None):
        return f"at most {field.max_length} {'entries' if 'ListField' in type(field).__name__ else 'characters'}"
    return ""


def row(name: str, field: Any) -> str:
    default = field.default() if callable(field.default) else field.default
    kind = TYPES[type(field).__name__] + (" or null" if field.allow_null else "")
    return f"| `{name}` | {kind} | {bounds(field)} | `{json.dumps(default)}` | {field.help_text} |"


@pytest.mark.parametrize(("name", "field"), FIELDS, ids=[name for name, _ in FIELDS])
def test_setting__is_described_as_it_is(name: str, field: Any) -> None:
    expected = row(name, field)
    assert expected in PAGE.read_text().splitlines(), f"docs/settings.md needs this row for {name}:\n{expected}"


def test_page__describes_no_other_setting() -> None:
    # Settings have rows of five cells, the warnings rows of three.
    lines = PAGE.read_text().splitlines()
    described = [line for line in lines if line.startswith("| `") and line.count(" | ") >= 4]
    surplus = [line for line in described if line.split("`")[1] not in dict(FIELDS)]
    assert surplus == [], "docs/settings.md describes settings that do not exist"
    assert len(described) <= len(FIELDS), "docs/settings.md describes a setting twice"
