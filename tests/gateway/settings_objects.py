"""The settings object of a project: its path, its defaults, and an object in which every setting differs from them."""

from __future__ import annotations

from typing import Any

from gateway.project_settings.declaration import Kind, Setting, declared
from gateway.project_settings.guardrails import GuardrailSettings
from gateway.project_settings.settings import ProjectSettings

PATH = "/api/llm/settings"
SETTINGS = declared(ProjectSettings)


def _other(one: Setting) -> Any:
    """Returns a value of a setting that is not its default."""
    match one.kind:
        case Kind.BOOLEAN:
            return not one.default
        case Kind.INTEGER | Kind.NUMBER:
            return (one.minimum or 0) + 7 if one.kind is Kind.INTEGER else one.maximum - 0.5
        case Kind.MONEY:
            return 12.3456789012
        case Kind.CHOICE | Kind.CHOICES:
            first = next(choice for choice in map(str, one.choices) if choice != one.default)
            return first if one.kind is Kind.CHOICE else [first]
        case Kind.OBJECT:
            return {part.name: _other(part) for part in one.settings}
    texts = {Kind.TEXT: "gpt-4o", Kind.URL: "https://example.org/hook", Kind.EMAILS: ["ops@example.org"]}
    return texts.get(one.kind, _NAMES.get(one.name, ["Börse", "股票"]))


# Names that have to be of some form, or of something that is there.
_NAMES = {
    "fallback_order": ["anthropic", "openai"],
    "document_delimiters": ["<document> </document>"],
    "rollout_thresholds": ["unanswered 0.001 -"],
}

GUARDRAILS: dict[str, Any] = {one.name: one.default for one in declared(GuardrailSettings)}
DEFAULTS = {one.name: one.default for one in SETTINGS} | {"warnings": []}
FULL = {one.name: _other(one) for one in SETTINGS}


def without_warnings(shown: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in shown.items() if name != "warnings"}
