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
    try:
        return msgspec.json.format(text, indent=2)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text


@register.filter
def provider_name(provider: str) -> str:
    return provider_title(provider)


@register.filter
def is_cut(part: dict[str, Any]) -> bool:
    return bool(len(part["text"]) < part["characters"])


@register.filter
def as_json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


@register.filter
def written_moment(value: str | datetime) -> SafeString | str:
    return moment(datetime.fromisoformat(value) if isinstance(value, str) else value)
