"""Export and import of a project's prompts as one JSON document, versions and active marker included.

An import adds and never overwrites: a config that exists keeps its description, its versions and its active version,
and gains the versions whose content it does not have. A config that is new gets the document's active version.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from prompts.content import VersionContent
from prompts.models import PromptConfig
from prompts.selectors import version_content
from prompts.services import activate_version, add_version, create_config, require_composable

FORMAT = "prompt-gateway/prompts"
FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class NumberedContent:
    number: int
    content: VersionContent


@dataclass(frozen=True, slots=True)
class ImportedConfig:
    """One config of a document that was read and checked; `active` is a number of `versions` or None."""

    name: str
    description: str
    active: int | None
    versions: Sequence[NumberedContent]


@dataclass(frozen=True, slots=True)
class ConfigOutcome:
    """The result of an import for one config, done or planned; the numbers are those of the document."""

    name: str
    created: bool
    added: tuple[int, ...]
    skipped: tuple[int, ...]


def export_prompts(project_id: UUID, config_id: UUID | None = None) -> dict[str, Any]:
    """Returns the project's configs, or one of them, as a JSON document. An unknown config gives an empty list."""
    configs = PromptConfig.objects.for_project(project_id).select_related("active_version").order_by("name")
    if config_id is not None:
        configs = configs.filter(pk=config_id)
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "exported_at": timezone.now().isoformat().replace("+00:00", "Z"),
        "configs": [_exported(config) for config in configs.prefetch_related("versions")],
    }


def import_prompts(
    *, project_id: UUID, configs: Iterable[ImportedConfig], actor: str, dry_run: bool = False
) -> list[ConfigOutcome]:
    """Imports a document as a whole or not at all. Importing it again changes nothing."""
    with transaction.atomic():
        ordered = sorted(configs, key=lambda item: item.name)
        outcomes = [_import_config(project_id, imported, actor=actor, dry_run=dry_run) for imported in ordered]
        if not dry_run:
            # A prompt may include one that stands behind it in the document.
            for imported in ordered:
                _check_includes(project_id, imported)
        return outcomes


def _check_includes(project_id: UUID, imported: ImportedConfig) -> None:
    """Raises InvalidVersionError for a version that includes what neither the project nor the document has."""
    config_id = PromptConfig.objects.for_project(project_id).values_list("pk", flat=True).get(name=imported.name)
    for item in imported.versions:
        require_composable(project_id, config_id, item.content.messages, item.content.variables)


def _exported(config: PromptConfig) -> dict[str, Any]:
    return {
        "name": config.name,
        "description": config.description,
        "active_version_number": config.active_version.number if config.active_version else None,
        "versions": [
            {
                "version_number": version.number,
                **asdict(version_content(version)),
                "created_by": version.created_by,
                "created_at": version.created_at.isoformat().replace("+00:00", "Z"),
            }
            for version in sorted(config.versions.all(), key=lambda version: version.number)
        ],
    }


def _import_config(project_id: UUID, imported: ImportedConfig, *, actor: str, dry_run: bool) -> ConfigOutcome:
    # The config's row is locked, so that two simultaneous imports do not both add a version.
    configs = PromptConfig.objects.for_project(project_id).select_for_update()
    existing = configs.filter(name=imported.name).first()
    missing, present = _sorted_out(imported.versions, existing)
    if not dry_run:
        _add(project_id, imported, existing, missing, actor=actor)
    return ConfigOutcome(
        name=imported.name,
        created=existing is None,
        added=tuple(item.number for item in missing),
        skipped=tuple(item.number for item in present),
    )


def _sorted_out(
    versions: Iterable[NumberedContent], existing: PromptConfig | None
) -> tuple[list[NumberedContent], list[NumberedContent]]:
    """Returns the versions to add and those that exist. Repetitions count: a return to an old text is a version."""
    rows = () if existing is None else existing.versions.all()
    there = Counter(_content_key(version_content(row)) for row in rows)
    missing: list[NumberedContent] = []
    present: list[NumberedContent] = []
    for item in sorted(versions, key=lambda item: item.number):
        key = _content_key(item.content)
        found = there[key] > 0
        there[key] -= found
        (present if found else missing).append(item)
    return missing, present


def _add(
    project_id: UUID,
    imported: ImportedConfig,
    existing: PromptConfig | None,
    missing: Iterable[NumberedContent],
    *,
    actor: str,
) -> None:
    config = existing or create_config(
        project_id=project_id, name=imported.name, description=imported.description, actor=actor
    )
    added = {
        item.number: add_version(
            project_id=project_id, config_id=config.pk, content=item.content, actor=actor, check_includes=False
        )
        for item in missing
    }
    if existing is None and imported.active is not None:
        activate_version(
            project_id=project_id,
            config_id=config.pk,
            version_id=added[imported.active].pk,
            actor=actor,
            reason="active in the import",
            check_includes=False,
        )


def _content_key(content: VersionContent) -> str:
    """Returns a key that is equal for versions with the same effect; the commit message has none."""
    served: Mapping[str, Any] = {name: value for name, value in asdict(content).items() if name != "commit_message"}
    return json.dumps(served)
