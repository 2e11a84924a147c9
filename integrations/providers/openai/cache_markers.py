"""Cache markers on messages, parts and tools: Anthropic's `cache_control`, which some look-alikes take, and OpenAI's
`prompt_cache_breakpoint` (https://developers.openai.com/api/docs/guides/prompt-caching).

Markers never change an answer, so they are removed without a warning for other providers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from integrations.providers.common.conversation import marker_of
from integrations.providers.openai.dialect import Dialect

_CONTROL, _BREAKPOINT = "cache_control", "prompt_cache_breakpoint"
_BOTH = frozenset({_CONTROL, _BREAKPOINT})


def mark_of_markers(dialect: Dialect) -> bytes:
    """Bytes in every body that `fit_markers` would change; empty for a dialect that takes any field."""
    if dialect.is_open:
        return b""
    return b'"cache_control"' if dialect.cache_breakpoint else b"cache_"


def fit_markers(holder: Mapping[str, Any], dialect: Dialect) -> Mapping[str, Any]:
    """Keeps only the provider's own marker; returns the same object if it has no other."""
    if _BOTH.isdisjoint(holder):
        return holder
    kept = _BREAKPOINT if dialect.cache_breakpoint else _CONTROL if dialect.cache_control else ""
    made = {name: value for name, value in holder.items() if name not in _BOTH or name == kept}
    if kept == _CONTROL and _CONTROL not in made and (marker := marker_of(holder)) is not None:
        made[_CONTROL] = marker
    return made


def fit_tools(tools: Any, dialect: Dialect) -> Any:
    """Fits markers of tools, also those inside the function, where some clients put them."""
    if not isinstance(tools, list):
        return tools
    return [_fit_tool(tool, dialect) if isinstance(tool, Mapping) else tool for tool in tools]


def _fit_tool(tool: Mapping[str, Any], dialect: Dialect) -> Mapping[str, Any]:
    made, function = fit_markers(tool, dialect), tool.get("function")
    fitted = fit_markers(function, dialect) if isinstance(function, Mapping) else function
    return made if fitted is function else {**made, "function": fitted}
