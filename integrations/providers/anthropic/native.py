from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# A message may hold blocks of the vendor's own tools, for which OpenAI's dialect has no equivalent. Types of results of
# the vendor's tools share an ending.
_BLOCKS = frozenset(
    {
        "compaction",
        "container_upload",
        "document",
        "image",
        "mcp_tool_result",
        "mcp_tool_use",
        "redacted_thinking",
        "search_result",
        "server_tool_use",
        "thinking",
        "tool_reference",
        "tool_result",
        "tool_use",
    }
)
# Anthropic's own fields of a request pass unchanged.
FIELDS = (
    "cache_control",
    "container",
    "context_management",
    "diagnostics",
    "inference_geo",
    "mcp_servers",
    "speed",
)
# A request with one of these has to announce the beta feature:
# https://docs.anthropic.com/en/api/beta-headers
_BETAS_OF_FIELDS = {
    "context_management": "context-management-2025-06-27",
    "mcp_servers": "mcp-client-2025-11-20",
}
_BETAS_OF_TOOLS = {
    "advisor_20260301": "advisor-tool-2026-03-01",
    "code_execution_20250522": "code-execution-2025-05-22",
    "computer_20241022": "computer-use-2024-10-22",
    "computer_20250124": "computer-use-2025-01-24",
    "computer_20251124": "computer-use-2025-11-24",
}
# Every use of a beta feature is in a field of this set.
_WITH_BETAS = frozenset({*_BETAS_OF_FIELDS, "container", "speed", "thinking", "tools"})
# https://platform.claude.com/docs/en/build-with-claude/preserved-thinking. Of the display only the types of the
# vendor's SDK tell: `updates` is in `BetaThinkingConfigEnabledParam` alone, the feature in `AnthropicBetaParam`.
_BINDING_BETA = "thinking-binding-controls-2026-08-01"
_UPDATES_BETA = "thinking-display-updates-2026-08-18"
_COMPACT = re.compile(r"compact_(\d{4})(\d{2})(\d{2})")
_FILES_BETA = "files-api-2025-04-14"
_SKILLS_BETA = "skills-2025-10-02"
_FAST_BETA = "fast-mode-2026-02-01"
_OLD_MCP_BETA = "mcp-client-2025-04-04"


def is_native(part: Mapping[str, Any]) -> bool:
    return is_block(part) or _is_uploaded(part)


def is_block(part: Mapping[str, Any]) -> bool:
    kind = part.get("type")
    if kind == "text":
        return _is_cited(part)
    return isinstance(kind, str) and (kind in _BLOCKS or kind.endswith("_tool_result"))


def _is_cited(part: Mapping[str, Any]) -> bool:
    """Whether a text has citations, for which OpenAI's texts have no field."""
    citations, text = part.get("citations"), part.get("text")
    return isinstance(citations, list) and bool(citations) and isinstance(text, str) and bool(text.strip())


def _is_uploaded(part: Mapping[str, Any]) -> bool:
    """Whether a file is named by its id, which only the vendor that holds it can use."""
    file = part.get("file") if part.get("type") == "file" else None
    return isinstance(file, Mapping) and isinstance(file.get("file_id"), str) and not file.get("file_data")


def native_block(part: Mapping[str, Any]) -> Mapping[str, Any]:
    if part.get("type") != "file":
        return part
    block: dict[str, Any] = {"type": "document", "source": {"type": "file", "file_id": part["file"]["file_id"]}}
    if part["file"].get("filename"):
        block["title"] = part["file"]["filename"]
    if part.get("cache_control"):
        block["cache_control"] = part["cache_control"]
    return block


def uses_files(block: Mapping[str, Any]) -> bool:
    source = block.get("source")
    return block.get("type") == "container_upload" or (isinstance(source, Mapping) and source.get("type") == "file")


def betas_of(body: Mapping[str, Any], *, files: bool) -> list[str]:
    if not files and body.keys().isdisjoint(_WITH_BETAS):
        return []
    found = [beta for name, beta in _BETAS_OF_FIELDS.items() if name in body]
    found += _compactions(body.get("context_management"))
    servers = body.get("mcp_servers")
    if isinstance(servers, list) and any(isinstance(one, Mapping) and "tool_configuration" in one for one in servers):
        # The first form of the connector has the tools' settings in the server and no toolset among the tools.
        found[found.index(_BETAS_OF_FIELDS["mcp_servers"])] = _OLD_MCP_BETA
    found += [_BETAS_OF_TOOLS[tool["type"]] for tool in body.get("tools") or () if tool.get("type") in _BETAS_OF_TOOLS]
    container = body.get("container")
    if isinstance(container, Mapping) and container.get("skills"):
        found.append(_SKILLS_BETA)
    if body.get("speed") == "fast":
        found.append(_FAST_BETA)
    found += _betas_of_thinking(body.get("thinking"))
    return [*found, _FILES_BETA] if files else found


def _compactions(management: Any) -> list[str]:
    """The beta feature of a compacting edit has the edit's date: compact_20260112."""
    edits = management.get("edits") if isinstance(management, Mapping) else None
    types = [edit.get("type") for edit in edits if isinstance(edit, Mapping)] if isinstance(edits, list) else []
    dates = [match.groups() for kind in types if isinstance(kind, str) and (match := _COMPACT.fullmatch(kind))]
    return list(dict.fromkeys("compact-{}-{}-{}".format(*date) for date in dates))


def _betas_of_thinking(thinking: Any) -> list[str]:
    if not isinstance(thinking, Mapping):
        return []
    found = [_BINDING_BETA] if "block_binding" in thinking else []
    return [*found, _UPDATES_BETA] if thinking.get("display") == "updates" else found
