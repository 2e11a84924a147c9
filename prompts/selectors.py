from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID
from weakref import WeakValueDictionary

from django.db.models import Count, QuerySet

from core.lookup.registry import Kind, Match, as_uuid, finds
from core.resources.rows import get_or_raise
from core.wire.shown import seen_as
from prompts.content.composition import Library, compose, is_composed
from prompts.content.messages import PromptMessage, texts_of
from prompts.content.templating import RoleAndText, Template, compile_messages
from prompts.content.version import VersionContent
from prompts.errors import BrokenIncludeError, ConfigNotFoundError, InvalidVersionError, VersionNotFoundError
from prompts.models import PromptActivation, PromptConfig, PromptLabel, PromptVersion


@dataclass(frozen=True, slots=True, weakref_slot=True)
class PromptVersionRecord:
    """A version as the hot path needs it: compiled, with `tools` and `response_format` as the JSON to send.

    An empty `model`, and None elsewhere, leaves the request's value. `included` has each included prompt's version
    number, by config and name; `problem` says why the version cannot be used since one of them changed.
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
        return bool(self.included or self.problem)

    def messages(self, values: Mapping[str, Any] | None, *, tolerated: Collection[str] = ()) -> list[PromptMessage]:
        """Returns the messages with `values` filled in, or as written if `values` is None; drops those that render to
        nothing. Raises VariableError, and BrokenIncludeError with `problem`."""
        if self.problem:
            raise BrokenIncludeError(self.problem)
        messages = (
            self.template.messages if values is None else self.template.render_messages(values, tolerated=tolerated)
        )
        return [{"role": role, "content": text} for role, text in messages]


@dataclass(frozen=True, slots=True)
class PromptConfigRecord:
    """A config as the hot path needs it; `active` is None until it has a version. `last_version` is its highest version
    number."""

    id: UUID
    name: str
    active: PromptVersionRecord | None
    last_version: int


# Versions never change, so a snapshot reuses the compiled ones of the snapshot before it. What a version includes may
# change, so that one with includes is compiled for each snapshot.
_records: WeakValueDictionary[UUID, PromptVersionRecord] = WeakValueDictionary()


def prompt_configs(project_id: UUID) -> Mapping[str, PromptConfigRecord]:
    """Returns configs by name, with one query, and a second one for versions not known yet."""
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
    version_id = PromptVersion.objects.filter(config_id=config_id, number=number).values_list("id", flat=True).first()
    return None if version_id is None else version_records({version_id}).get(version_id)


def numbered_version(project_id: UUID, config_name: str, number: int) -> PromptVersionRecord:
    """Returns any version of a config, active or not. Raises ConfigNotFoundError and VersionNotFoundError."""
    config = get_or_raise(PromptConfig.objects.for_project(project_id), ConfigNotFoundError, name=config_name)
    version = version_by_number(config.pk, number)
    if version is None:
        raise VersionNotFoundError
    return version


def labelled_versions(project_id: UUID) -> Mapping[UUID, Mapping[str, UUID]]:
    found: dict[UUID, dict[str, UUID]] = {}
    rows = PromptLabel.objects.filter(config__project_id=project_id)
    for config_id, name, version_id in rows.values_list("config_id", "name", "version_id"):
        found.setdefault(config_id, {})[name] = version_id
    return found


def list_configs(project_id: UUID) -> QuerySet[PromptConfig]:
    """Returns configs by name, each with its active version and its number of versions as `version_count`."""
    configs = PromptConfig.objects.for_project(project_id).select_related("active_version")
    return configs.annotate(version_count=Count("versions")).order_by("name")


def get_config(project_id: UUID, config_id: UUID) -> PromptConfig:
    """Returns a config with `version_count`. Raises ConfigNotFoundError, also for another project's."""
    return get_or_raise(list_configs(project_id), ConfigNotFoundError, pk=config_id)


def list_versions(project_id: UUID, config_id: UUID) -> QuerySet[PromptVersion]:
    _require_config(project_id, config_id)
    return PromptVersion.objects.filter(config_id=config_id).select_related("config").order_by("-number")


def get_version(project_id: UUID, config_id: UUID, version_id: UUID) -> PromptVersion:
    return get_or_raise(list_versions(project_id, config_id), VersionNotFoundError, pk=version_id)


def version_content(version: PromptVersion) -> VersionContent:
    return seen_as(VersionContent, version)


def list_activations(project_id: UUID, config_id: UUID) -> QuerySet[PromptActivation]:
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
    own = PromptConfig.objects.for_project(project_id)
    identity = as_uuid(text)
    rows = own.filter(pk=identity) if identity else own.filter(name=text)
    return [Match(Kind.PROMPT, str(row.pk), row.name) for row in rows]


def prompt_names(project_id: UUID, keys: Sequence[str]) -> Mapping[str, str]:
    """`keys` are those of figures: a prompt's id, or `{id}/{version}`. Deleted prompts are left out."""
    ids = {found for key in keys if (found := as_uuid(key.partition("/")[0]))}
    named = PromptConfig.objects.for_project(project_id).filter(pk__in=ids) if ids else PromptConfig.objects.none()
    names = {str(pk): name for pk, name in named.values_list("pk", "name")}
    shown = {}
    for key in keys:
        config, _, version = key.partition("/")
        if config in names:
            shown[key] = f"{names[config]}, version {version}" if version else names[config]
    return shown
