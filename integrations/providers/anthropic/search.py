"""`web_search_options` as the vendor's own search (https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from integrations.providers.common.parameters import Mapped

# The version that every model with the tool takes; later ones filter what they find with code that has to be allowed.
_TYPE = "web_search_20250305"
_TYPES = "web_search_"
# How many searches stand for a size; without one the vendor sets no bound.
_MAX_USES = {"low": 1, "medium": 5, "high": 10}
_PLACE = ("city", "country", "region", "timezone")

Json = dict[str, Any]


def search_tool(mapped: Mapped, tools: list[Json]) -> Json | None:
    """The tool to add to `tools`; None without a wish, or where the client names such a tool itself."""
    wish = mapped.take("web_search_options")
    if not isinstance(wish, Mapping):
        return None
    if any(str(tool.get("type")).startswith(_TYPES) for tool in tools):
        mapped.drop("web_search_options", "the tools hold a search already")
        return None
    tool: Json = {"type": _TYPE, "name": "web_search"}
    for name, value in wish.items():
        if name == "search_context_size" and value in _MAX_USES:
            tool["max_uses"] = _MAX_USES[value]
        elif name == "user_location" and (place := _place(value)):
            tool["user_location"] = place
        elif value is not None:
            mapped.drop(f"web_search_options.{name}")
    return tool


def _place(location: Any) -> Json:
    """Chat completions nest the place in `approximate`, the Responses API and the vendor do not. Empty for none."""
    if not isinstance(location, Mapping):
        return {}
    nested = location.get("approximate")
    named = nested if isinstance(nested, Mapping) else location
    place = {name: named[name] for name in _PLACE if isinstance(named.get(name), str) and named[name]}
    return {"type": "approximate", **place} if place else {}
