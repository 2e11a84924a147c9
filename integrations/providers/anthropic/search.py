"""Translates `web_search_options` to the vendor's own search tool
(https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from integrations.providers.common.parameters import Mapped

# Every model with the search tool takes its version of March 2025; later ones filter results with code that has to be
# allowed.
_TYPE = "web_search_20250305"
_TYPES = "web_search_"
# Each size is translated to a maximum number of searches; without a size the vendor sets no maximum.
_MAX_USES = {"low": 1, "medium": 5, "high": 10}
_PLACE = ("city", "country", "region", "timezone")

Json = dict[str, Any]


def search_tool(mapped: Mapped, tools: list[Json]) -> Json | None:
    """Returns the tool to add to `tools`; None when the request asks for no search, or names such a tool itself."""
    options = mapped.take("web_search_options")
    if not isinstance(options, Mapping):
        return None
    if any(str(tool.get("type")).startswith(_TYPES) for tool in tools):
        mapped.drop("web_search_options", "the tools hold a search already")
        return None
    tool: Json = {"type": _TYPE, "name": "web_search"}
    for name, value in options.items():
        if name == "search_context_size" and value in _MAX_USES:
            tool["max_uses"] = _MAX_USES[value]
        elif name == "user_location" and (place := _place(value)):
            tool["user_location"] = place
        elif value is not None:
            mapped.drop(f"web_search_options.{name}")
    return tool


def _place(location: Any) -> Json:
    """Returns the user's place, empty for none. Chat completions nest it in `approximate`, the Responses API and the
    vendor do not."""
    if not isinstance(location, Mapping):
        return {}
    nested = location.get("approximate")
    named = nested if isinstance(nested, Mapping) else location
    place = {name: named[name] for name in _PLACE if isinstance(named.get(name), str) and named[name]}
    return {"type": "approximate", **place} if place else {}
