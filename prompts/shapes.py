from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, TypedDict
from uuid import UUID

from prompts.content.checks import PromptVariable
from prompts.diff.contents import PromptLine, PromptMessageChange
from prompts.transfer import ImportedConfigOutcome
from prompts.usage import PromptVersionUsage


class PromptVersionHead(TypedDict):
    id: UUID
    version_number: int
    is_active: bool
    commit_message: str
    created_by: str
    created_at: datetime


class PromptVersionEntry(PromptVersionHead):
    config_id: UUID
    system_prompt: str
    messages: list[dict[str, Any]]
    model: str
    temperature: float | None
    max_tokens: int | None
    variables: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    response_format: dict[str, Any] | None


class PromptVersionDetail(PromptVersionEntry):
    usage: PromptVersionUsage | None


PromptChange = TypedDict(
    "PromptChange", {"name": str, "kind": Literal["changed", "removed", "added"], "from": Any, "to": Any}
)
PromptDiff = TypedDict(
    "PromptDiff",
    {
        "from": PromptVersionHead,
        "to": PromptVersionHead,
        "system_prompt": list[PromptLine],
        "messages": list[PromptMessageChange],
        "variables": list[PromptChange],
        "tools": list[PromptChange],
        "parameters": list[PromptChange],
    },
)


class PromptFinding(TypedDict):
    severity: Literal["error", "warning"]
    field: str
    message: str
    line: int | None
    column: int | None


class PromptCheck(TypedDict):
    valid: bool
    findings: list[PromptFinding]
    variables: list[PromptVariable]
    undeclared: list[str]
    unused: list[str]
    token_count: int
    tokens_estimated: bool
    size_bytes: int


class PromptDocument(TypedDict):
    format: str
    format_version: int
    exported_at: datetime
    configs: list[dict[str, Any]]


class PromptImport(TypedDict):
    dry_run: bool
    configs_created: int
    versions_added: int
    versions_skipped: int
    labels_added: int
    configs: list[ImportedConfigOutcome]
