"""Tools about prompts: configs, versions, the differences of two versions, and past activations."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import Meta

from agent.tools.base import Arguments, Tool, ToolContext
from agent.tools.llm.scope import SCOPE
from agent.tools.pages import PageArguments, chosen, filtered, listed_rows, page_of
from prompts import selectors
from prompts.errors import ConfigNotFoundError, VersionNotFoundError
from prompts.filters import ActivationFilter, ConfigFilter, VersionFilter
from prompts.labels import list_label_moves, list_labels
from prompts.models import LABEL_CHARACTERS, NAME_CHARACTERS, PromptConfig
from prompts.serializers import ActivationSerializer, ConfigSerializer, VersionSerializer
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


class ListVersions(PageArguments, kw_only=True, frozen=True):
    config: _Config
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


class ListActivations(PageArguments, kw_only=True, frozen=True):
    config: _Config
    kind: Annotated[
        Literal["created", "activated", "undone", "rollout"] | None, Meta(description="Only moves of this kind.")
    ] = None


class ListLabels(PageArguments, kw_only=True, frozen=True):
    config: _Config


class ListLabelMoves(PageArguments, kw_only=True, frozen=True):
    config: _Config
    label: Annotated[str, Meta(max_length=LABEL_CHARACTERS, description="Only moves of this label.")] = ""


def _list_configs(context: ToolContext, arguments: ListConfigs) -> dict[str, Any]:
    values = chosen(arguments, ["name", "search"])
    if arguments.has_active_rollout is not None:
        values["has_active_rollout"] = str(arguments.has_active_rollout).lower()
    rows = filtered(ConfigFilter, values, selectors.list_configs(context.project_id))
    return listed_rows(rows, ConfigSerializer, page_of(arguments))


def _get_config(context: ToolContext, arguments: OneConfig) -> dict[str, Any]:
    return dict(ConfigSerializer(_config(context, arguments.config)).data)


def _list_versions(context: ToolContext, arguments: ListVersions) -> dict[str, Any]:
    config = _config(context, arguments.config)
    rows = filtered(VersionFilter, {"search": arguments.search}, selectors.list_versions(context.project_id, config.pk))
    return listed_rows(rows, VersionSerializer, page_of(arguments))


def _get_version(context: ToolContext, arguments: OneVersion) -> dict[str, Any]:
    config = _config(context, arguments.config)
    return version_detail(context.project_id, config.pk, _version_id(context, config, arguments.version))


def _diff_versions(context: ToolContext, arguments: TwoVersions) -> dict[str, Any]:
    config = _config(context, arguments.config)
    before = _version_id(context, config, arguments.from_version)
    after = _version_id(context, config, arguments.to_version)
    return _with_changes_only(version_diff(context.project_id, config.pk, before, after))


def _with_changes_only(diff: dict[str, Any]) -> dict[str, Any]:
    """Returns the diff's changed rows; `unchanged_lines_left_out` counts the equal rows that are not shown."""
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


def _list_activations(context: ToolContext, arguments: ListActivations) -> dict[str, Any]:
    config = _config(context, arguments.config)
    rows = selectors.list_activations(context.project_id, config.pk)
    return listed_rows(
        filtered(ActivationFilter, {"kind": arguments.kind}, rows), ActivationSerializer, page_of(arguments)
    )


def _list_labels(context: ToolContext, arguments: ListLabels) -> dict[str, Any]:
    rows = list_labels(context.project_id, _config(context, arguments.config).pk)
    return listed_rows(rows, LabelSerializer, page_of(arguments))


def _list_label_moves(context: ToolContext, arguments: ListLabelMoves) -> dict[str, Any]:
    rows = list_label_moves(context.project_id, _config(context, arguments.config).pk)
    return listed_rows(
        filtered(LabelMoveFilter, {"label": arguments.label}, rows), LabelMoveSerializer, page_of(arguments)
    )


def _config(context: ToolContext, named: str) -> PromptConfig:
    """Returns a config by id or else by name. Raises ConfigNotFoundError."""
    configs = selectors.list_configs(context.project_id)
    config_id = _uuid(named)
    found = configs.filter(pk=config_id).first() if config_id else None
    found = found or configs.filter(name=named).first()
    if found is None:
        raise ConfigNotFoundError
    return found


def _version_id(context: ToolContext, config: PromptConfig, version: str | int) -> UUID:
    """Returns a version's id by its number. Raises VersionNotFoundError."""
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
    try:
        return UUID(text) if len(text) == _ID_CHARACTERS else None
    except ValueError:
        return None


TOOLS: tuple[Tool, ...] = (
    Tool(
        name="list_prompt_configs",
        scope=SCOPE,
        title="Prompt configs",
        description=(
            "List managed prompts by name, each with its active version's number, how many versions it has and whether"
            " a rollout is going on."
        ),
        arguments=ListConfigs,
        run=_list_configs,
    ),
    Tool(
        name="get_prompt_config",
        scope=SCOPE,
        title="Prompt config",
        description="One managed prompt: description, active version, number of versions, whether a rollout goes on.",
        arguments=OneConfig,
        run=_get_config,
    ),
    Tool(
        name="list_prompt_versions",
        scope=SCOPE,
        title="Prompt versions",
        description=(
            "The versions of a prompt config, the newest first, with prompt text, model, parameters, variables, commit"
            " message and author."
        ),
        arguments=ListVersions,
        run=_list_versions,
    ),
    Tool(
        name="get_prompt_version",
        scope=SCOPE,
        title="Prompt version",
        description=(
            "One version of a prompt config with its whole text, and how often it was served and when last. Without a"
            " version: the active one."
        ),
        arguments=OneVersion,
        run=_get_version,
    ),
    Tool(
        name="diff_prompt_versions",
        scope=SCOPE,
        title="Prompt diff",
        description=(
            "What changed from one version of a prompt config to another: lines of the prompt, variables, tools and"
            " parameters."
        ),
        arguments=TwoVersions,
        run=_diff_versions,
    ),
    Tool(
        name="list_prompt_activations",
        scope=SCOPE,
        title="Prompt history",
        description=(
            "Which version of a prompt config became active when, by whom and why (created, activated, undone, or"
            " rollout completed), the latest first."
        ),
        arguments=ListActivations,
        run=_list_activations,
    ),
    Tool(
        name="list_prompt_labels",
        scope=SCOPE,
        title="Prompt labels",
        description="The labels of a prompt config by name, each with its version and whether it is protected.",
        arguments=ListLabels,
        run=_list_labels,
    ),
    Tool(
        name="list_prompt_label_moves",
        scope=SCOPE,
        title="Prompt label history",
        description="Which label of a prompt config was moved when, between which versions, by whom and why.",
        arguments=ListLabelMoves,
        run=_list_label_moves,
    ),
)
