"""Template filters for conversations: `{% load conversations %}`."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import msgspec
from django import template
from django.utils.safestring import SafeString

from core.ui.formats import moment
from integrations.registry import provider_title

register = template.Library()


@register.filter
def pretty(text: str) -> str:
    """Returns JSON with line breaks and indents, and any other text as it is."""
    try:
        return msgspec.json.format(text, indent=2)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text


@register.filter
def provider_name(provider: str) -> str:
    """Returns the name of a provider as the vendor writes it."""
    return provider_title(provider)


@register.filter
def is_cut(part: dict[str, Any]) -> bool:
    """Returns whether a part shows only the beginning of its text."""
    return bool(len(part["text"]) < part["characters"])


@register.filter
def as_json(value: Any) -> str:
    """Returns a value of an answer of the API as JSON with line breaks."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


@register.filter
def written_moment(value: str | datetime) -> SafeString | str:
    """Returns the <time> element of a time that an answer of the API has as a text."""
    return moment(datetime.fromisoformat(value) if isinstance(value, str) else value)
