from __future__ import annotations

import re
from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import Meta

from agent.tools.base import Arguments, Toolbox, ToolContext
from agent.tools.llm.scope import SCOPE
from agent.tools.pages import PageArguments, chosen, filtered, listed_each, listed_rows
from core.lookup.registry import as_uuid
from prompts import selectors
from prompts.errors import ConfigNotFoundError, VersionNotFoundError
from prompts.filters import ActivationFilter, ConfigFilter, VersionFilter
from prompts.labels import list_label_moves, list_labels
from prompts.models import LABEL_CHARACTERS, NAME_CHARACTERS, PromptConfig
from prompts.serializers import ActivationSerializer, ConfigSerializer, version_entry
from prompts.viewsets.details import version_detail, version_diff
from prompts.viewsets.labels import LabelMoveFilter, LabelMoveSerializer, LabelSerializer

_SEARCH_CHARACTERS = 200
_ID_CHARACTERS = 36
# The equal lines that are shown before and after each change of a diff.
_LINES_AROUND = 2
_NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)

_Config = Annotated[
    str, Meta(min_length=1, max_length=NAME_CHARACTERS, description="Id or name of the prompt config, exactly.")
]
_VERSION = "Number or id of the version"
# A model writes the number as a text or as a number.
_Version = Annotated[str, Meta(max_length=_ID_CHARACTERS)] | int


TOOLS = Toolbox(SCOPE)


class ListConfigs(PageArguments, kw_only=True, frozen=True):
    name: Annotated[str, Meta(max_length=NAME_CHARACTERS, description="Only of this name, exactly.")] = ""
    search: Annotated[
        str, Meta(max_length=_SEARCH_CHARACTERS, description="Only with this text in name or description.")
    ] = ""
    has_active_rollout: Annotated[bool | None, Meta(description="Only with, or only without, a rollout going on.")] = (
        None
    )


class OneConfig(Arguments, kw_only=True, frozen=True):
    config: _Config


class OfConfig(PageArguments, kw_only=True, frozen=True):
    config: _Config


class ListVersions(OfConfig, kw_only=True, frozen=True):
    search: Annotated[
        str, Meta(max_length=_SEARCH_CHARACTERS, description="Only with this text in the prompt or commit message.")
    ] = ""


class OneVersion(Arguments, kw_only=True, frozen=True):
    config: _Config
    version: Annotated[_Version, Meta(description=f"{_VERSION}; the active version when left out.")] = ""


class TwoVersions(Arguments, kw_only=True, frozen=True):
    config: _Config
    from_version: Annotated[
        Annotated[str, Meta(min_length=1, max_length=_ID_CHARACTERS)] | int, Meta(description=f"{_VERSION} before.")
    ]
    to_version: Annotated[_Version, Meta(description=f"{_VERSION} after; the active version when left out.")] = ""


class ListActivations(OfConfig, kw_only=True, frozen=True):
    kind: Annotated[
        Literal["created", "activated", "undone", "rollout"] | None, Meta(description="Only moves of this kind.")
    ] = None


class ListLabelMoves(OfConfig, kw_only=True, frozen=True):
    label: Annotated[str, Meta(max_length=LABEL_CHARACTERS, description="Only moves of this label.")] = ""


@TOOLS.tool("Prompt configs")
def list_prompt_configs(context: ToolContext, arguments: ListConfigs) -> dict[str, Any]:
    """List managed prompts by name, each with its active version's number, how many versions it has and whether a
    rollout is going on."""
    values = chosen(arguments, ["name", "search"])
    if arguments.has_active_rollout is not None:
        values["has_active_rollout"] = str(arguments.has_active_rollout).lower()
    rows = filtered(ConfigFilter, values, selectors.list_configs(context.project_id))
    return listed_rows(rows, ConfigSerializer, arguments)


@TOOLS.tool("Prompt config")
def get_prompt_config(context: ToolContext, arguments: OneConfig) -> dict[str, Any]:
    """One managed prompt: description, active version, number of versions, whether a rollout goes on."""
    return dict(ConfigSerializer(_config(context, arguments.config)).data)


@TOOLS.tool("Prompt versions")
def list_prompt_versions(context: ToolContext, arguments: ListVersions) -> dict[str, Any]:
    """The versions of a prompt config, the newest first, with prompt text, model, parameters, variables, commit message
    and author."""
    config = _config(context, arguments.config)
    rows = filtered(VersionFilter, {"search": arguments.search}, selectors.list_versions(context.project_id, config.pk))
    return listed_each(rows, version_entry, arguments)


@TOOLS.tool("Prompt version")
def get_prompt_version(context: ToolContext, arguments: OneVersion) -> dict[str, Any]:
    """One version of a prompt config with its whole text, and how often it was served and when last. Without a version:
    the active one."""
    config = _config(context, arguments.config)
    return version_detail(context.project_id, config.pk, _version_id(context, config, arguments.version))


@TOOLS.tool("Prompt diff")
def diff_prompt_versions(context: ToolContext, arguments: TwoVersions) -> dict[str, Any]:
    """What changed from one version of a prompt config to another: lines of the prompt, variables, tools and
    parameters."""
    config = _config(context, arguments.config)
    before = _version_id(context, config, arguments.from_version)
    after = _version_id(context, config, arguments.to_version)
    return _with_changes_only(version_diff(context.project_id, config.pk, before, after))


def _with_changes_only(diff: dict[str, Any]) -> dict[str, Any]:
    shown = _near_changes(diff["system_prompt"])
    messages = [{**message, "lines": _near_changes(message["lines"])} for message in diff["messages"]]
    left_out = len(diff["system_prompt"]) - len(shown)
    for whole, part in zip(diff["messages"], messages, strict=True):
        left_out += len(whole["lines"]) - len(part["lines"])
    return {**diff, "system_prompt": shown, "messages": messages, "unchanged_lines_left_out": left_out}


def _near_changes(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    near = {
        place
        for index, row in enumerate(rows)
        if row["kind"] != "equal"
        for place in range(index - _LINES_AROUND, index + _LINES_AROUND + 1)
    }
    return [row for index, row in enumerate(rows) if index in near]


@TOOLS.tool("Prompt history")
def list_prompt_activations(context: ToolContext, arguments: ListActivations) -> dict[str, Any]:
    """Which version of a prompt config became active when, by whom and why (created, activated, undone, or rollout
    completed), the latest first."""
    config = _config(context, arguments.config)
    rows = selectors.list_activations(context.project_id, config.pk)
    return listed_rows(filtered(ActivationFilter, {"kind": arguments.kind}, rows), ActivationSerializer, arguments)


@TOOLS.tool("Prompt labels")
def list_prompt_labels(context: ToolContext, arguments: OfConfig) -> dict[str, Any]:
    """The labels of a prompt config by name, each with its version and whether it is protected."""
    rows = list_labels(context.project_id, _config(context, arguments.config).pk)
    return listed_rows(rows, LabelSerializer, arguments)


@TOOLS.tool("Prompt label history")
def list_prompt_label_moves(context: ToolContext, arguments: ListLabelMoves) -> dict[str, Any]:
    """Which label of a prompt config was moved when, between which versions, by whom and why."""
    rows = list_label_moves(context.project_id, _config(context, arguments.config).pk)
    return listed_rows(filtered(LabelMoveFilter, {"label": arguments.label}, rows), LabelMoveSerializer, arguments)


def _config(context: ToolContext, named: str) -> PromptConfig:
    configs = selectors.list_configs(context.project_id)
    config_id = _uuid(named)
    found = configs.filter(pk=config_id).first() if config_id else None
    found = found or configs.filter(name=named).first()
    if found is None:
        raise ConfigNotFoundError
    return found


def _version_id(context: ToolContext, config: PromptConfig, version: str | int) -> UUID:
    named = str(version)
    if not named:
        found = config.active_version_id
    elif _NUMBER.fullmatch(named):
        versions = selectors.list_versions(context.project_id, config.pk).filter(number=int(named))
        found = versions.values_list("pk", flat=True).first()
    else:
        found = _uuid(named)
    if found is None:
        raise VersionNotFoundError
    return found


def _uuid(text: str) -> UUID | None:
    return as_uuid(text) if len(text) == _ID_CHARACTERS else None
