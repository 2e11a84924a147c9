"""The web search of the Messages API, by other vendors' searches
(https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool).

The blocks of a search say what was found, and clients send them back. Those that the gateway made carry its seal, so
that Anthropic does not get them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gateway.surfaces.checks import Json
from gateway.surfaces.messages.foreign import SEAL, SEARCH_ID

# Most other vendors search the whole web alone, so that their adapters refuse these.
_SITES = ("allowed_domains", "blocked_domains")
_OF_EVERY_TOOL = frozenset({"type", "name", "user_location", "cache_control", "allowed_callers", *_SITES})


def search_options(tool: Mapping[str, Any], place: str, warnings: list[str]) -> Json:
    """The `filters` are those of the Responses API."""
    warnings += [
        f"{place}.{name}: dropped, only Anthropic's search has it"
        for name, value in tool.items()
        if name not in _OF_EVERY_TOOL and value is not None
    ]
    options: Json = {}
    if isinstance(location := tool.get("user_location"), Mapping):
        where = {name: value for name, value in location.items() if name != "type" and value is not None}
        options["user_location"] = {"type": "approximate", "approximate": where}
    if sites := {name: tool[name] for name in _SITES if tool.get(name)}:
        options["filters"] = sites
    return {"web_search_options": options}


def search_blocks(annotations: Iterable[Mapping[str, Any]], request_id: str) -> list[Json]:
    pages = list(_pages(annotations))
    if not pages:
        return []
    identifier = f"{SEARCH_ID}{request_id.replace('-', '')}"
    call = {"type": "server_tool_use", "id": identifier, "name": "web_search", "input": {}}
    return [call, {"type": "web_search_tool_result", "tool_use_id": identifier, "content": pages}]


def _pages(annotations: Iterable[Mapping[str, Any]]) -> Iterator[Json]:
    known = set()
    for annotation in annotations:
        cited = annotation.get("url_citation")
        url = cited.get("url") if isinstance(cited, Mapping) else None
        if not isinstance(cited, Mapping) or not isinstance(url, str) or url in known:
            continue
        known.add(url)
        title = cited.get("title")
        page = {"type": "web_search_result", "url": url, "title": title if isinstance(title, str) else url}
        yield {**page, "encrypted_content": SEAL, "page_age": None}
