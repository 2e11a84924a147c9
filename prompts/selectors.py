"""Queries of prompts, for the gateway and the management API."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID
from weakref import WeakValueDictionary

from django.db.models import Count, QuerySet

from core.lookup.registry import Kind, Match, as_uuid, finds
from prompts.content.composition import Library, compose, is_composed
from prompts.content.messages import PromptMessage, texts_of
from prompts.content.templating import RoleAndText, Template, compile_messages
from prompts.content.version import VersionContent
from prompts.errors import BrokenIncludeError, ConfigNotFoundError, InvalidVersionError, VersionNotFoundError
from prompts.models import PromptActivation, PromptConfig, PromptLabel, PromptVersion


@dataclass(frozen=True, slots=True, weakref_slot=True)
class PromptVersionRecord:
    """A version as the hot path needs it: compiled, with `tools` and `response_format` as the JSON to send.

    An empty `model`, and None elsewhere, leaves the request's value. `included` has the version number of each prompt
    that this one includes, by config and name; `problem` says what keeps it from being used, now that one of these has
    changed.
    """

    id: UUID
    number: int
    template: Template
    model: str
    temperature: float | None
    max_tokens: int | None
    tools: bytes | None
    response_format: bytes | None
    included: Mapping[tuple[UUID, str], int] = field(default_factory=dict)
    problem: str = ""

    @property
    def is_composed(self) -> bool:
        """True where the texts follow other prompts, so that they may change."""
        return bool(self.included or self.problem)

    def messages(self, values: Mapping[str, Any] | None, *, tolerated: Collection[str] = ()) -> list[PromptMessage]:
        """Returns the messages with `values` filled in, or as they are written when `values` is None. A text that
        renders to nothing is no message. Raises VariableError, and BrokenIncludeError where `problem` says why."""
        if self.problem:
            raise BrokenIncludeError(self.problem)
        messages = (
            self.template.messages if values is None else self.template.render_messages(values, tolerated=tolerated)
        )
        return [{"role": role, "content": text} for role, text in messages]


@dataclass(frozen=True, slots=True)
class PromptConfigRecord:
    """A config as the hot path needs it; `active` is None until the config has a version. `last_version` is the highest
    number of its versions."""

    id: UUID
    name: str
    active: PromptVersionRecord | None
    last_version: int


# Versions never change, so a snapshot reuses the compiled ones of the snapshot before it. What a version includes may
# change, so that one with includes is compiled for each snapshot.
_records: WeakValueDictionary[UUID, PromptVersionRecord] = WeakValueDictionary()


def prompt_configs(project_id: UUID) -> Mapping[str, PromptConfigRecord]:
    """Returns the project's configs by name: one query, and a second one for versions that are not yet known."""
    rows = PromptConfig.objects.for_project(project_id).only("id", "name", "active_version_id", "last_version_number")
    found = {row.name: row for row in rows}
    records = version_records({row.active_version_id for row in found.values() if row.active_version_id is not None})
    return {
        name: PromptConfigRecord(
            id=row.pk,
            name=name,
            active=None if row.active_version_id is None else records.get(row.active_version_id),
            last_version=row.last_version_number,
        )
        for name, row in found.items()
    }


def version_records(version_ids: Collection[UUID]) -> dict[UUID, PromptVersionRecord]:
    """Returns versions by id; unknown ids are left out."""
    known = {version_id: _records.get(version_id) for version_id in version_ids}
    found = {version_id: record for version_id, record in known.items() if record is not None}
    unknown = known.keys() - found.keys()
    if unknown:
        libraries: dict[UUID, Library] = {}
        for row in PromptVersion.objects.filter(pk__in=unknown).select_related("config"):
            if is_composed(row.messages):
                project_id = row.config.project_id
                found[row.pk] = _composed(row, libraries.setdefault(project_id, Library(project_id)))
            else:
                found[row.pk] = _records[row.pk] = _record(
                    row, texts_of(row.system_prompt, row.messages), row.variables
                )
    return found


def version_by_number(config_id: UUID, number: int) -> PromptVersionRecord | None:
    """Returns any version of a config, active or not; None when it has no such version."""
    version_id = PromptVersion.objects.filter(config_id=config_id, number=number).values_list("id", flat=True).first()
    return None if version_id is None else version_records({version_id}).get(version_id)


def numbered_version(project_id: UUID, config_name: str, number: int) -> PromptVersionRecord:
    """Returns any version of a config, active or not. Raises ConfigNotFoundError and VersionNotFoundError."""
    config = PromptConfig.objects.for_project(project_id).filter(name=config_name).first()
    if config is None:
        raise ConfigNotFoundError
    version = version_by_number(config.pk, number)
    if version is None:
        raise VersionNotFoundError
    return version


def labelled_versions(project_id: UUID) -> Mapping[UUID, Mapping[str, UUID]]:
    """Returns the version of each label by config and name."""
    found: dict[UUID, dict[str, UUID]] = {}
    rows = PromptLabel.objects.filter(config__project_id=project_id)
    for config_id, name, version_id in rows.values_list("config_id", "name", "version_id"):
        found.setdefault(config_id, {})[name] = version_id
    return found


def list_configs(project_id: UUID) -> QuerySet[PromptConfig]:
    """Returns configs by name, each with its active version and, as `version_count`, the number of its versions."""
    configs = PromptConfig.objects.for_project(project_id).select_related("active_version")
    return configs.annotate(version_count=Count("versions")).order_by("name")


def get_config(project_id: UUID, config_id: UUID) -> PromptConfig:
    """Returns a config with `version_count`. Raises ConfigNotFoundError, also for another project's."""
    row = list_configs(project_id).filter(pk=config_id).first()
    if row is None:
        raise ConfigNotFoundError
    return row


def list_versions(project_id: UUID, config_id: UUID) -> QuerySet[PromptVersion]:
    """Returns a config's versions, newest first. Raises ConfigNotFoundError."""
    _require_config(project_id, config_id)
    return PromptVersion.objects.filter(config_id=config_id).select_related("config").order_by("-number")


def get_version(project_id: UUID, config_id: UUID, version_id: UUID) -> PromptVersion:
    """Returns a version. Raises ConfigNotFoundError and VersionNotFoundError."""
    row = list_versions(project_id, config_id).filter(pk=version_id).first()
    if row is None:
        raise VersionNotFoundError
    return row


def version_content(version: PromptVersion) -> VersionContent:
    return VersionContent(
        system_prompt=version.system_prompt,
        messages=version.messages,
        model=version.model,
        temperature=version.temperature,
        max_tokens=version.max_tokens,
        variables=version.variables,
        tools=version.tools,
        response_format=version.response_format,
        commit_message=version.commit_message,
    )


def list_activations(project_id: UUID, config_id: UUID) -> QuerySet[PromptActivation]:
    """Returns a config's activations, latest first. Raises ConfigNotFoundError."""
    _require_config(project_id, config_id)
    activations = PromptActivation.objects.filter(config_id=config_id).order_by("-id")
    return activations.select_related("from_version", "to_version")


def _require_config(project_id: UUID, config_id: UUID) -> None:
    if not PromptConfig.objects.for_project(project_id).filter(pk=config_id).exists():
        raise ConfigNotFoundError


def _composed(row: PromptVersion, library: Library) -> PromptVersionRecord:
    try:
        made = compose(library, row.config_id, row.messages, row.variables)
        return replace(_record(row, made.texts, made.variables), included=made.included)
    except InvalidVersionError as error:
        # The version was in order when it was saved.
        return replace(_record(row, texts_of("", row.messages), row.variables), problem=error.message)


def _record(
    row: PromptVersion, texts: Iterable[RoleAndText], variables: Sequence[Mapping[str, Any]]
) -> PromptVersionRecord:
    return PromptVersionRecord(
        id=row.pk,
        number=row.number,
        template=compile_messages(texts, variables),
        model=row.model,
        temperature=row.temperature,
        max_tokens=row.max_tokens,
        tools=_encoded(row.tools) if row.tools else None,
        response_format=None if row.response_format is None else _encoded(row.response_format),
    )


def _encoded(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


@finds(Kind.PROMPT)
def find_prompts(project_id: UUID, text: str) -> Sequence[Match]:
    """Returns the project's prompts of this id or name."""
    own = PromptConfig.objects.for_project(project_id)
    identity = as_uuid(text)
    rows = own.filter(pk=identity) if identity else own.filter(name=text)
    return [Match(Kind.PROMPT, str(row.pk), row.name) for row in rows]


def prompt_names(project_id: UUID, keys: Sequence[str]) -> Mapping[str, str]:
    """Returns the names of prompts by the keys of figures: a prompt's id, or `{id}/{version}`. Prompts that do not
    exist any more are left out."""
    ids = {found for key in keys if (found := as_uuid(key.partition("/")[0]))}
    named = PromptConfig.objects.for_project(project_id).filter(pk__in=ids) if ids else PromptConfig.objects.none()
    names = {str(pk): name for pk, name in named.values_list("pk", "name")}
    shown = {}
    for key in keys:
        config, _, version = key.partition("/")
        if config in names:
            shown[key] = f"{names[config]}, version {version}" if version else names[config]
    return shown
