"""Export and import of a project's prompts as one JSON document: versions, the active marker, and labels.

An import adds and never overwrites: an existing config keeps its description, versions, active version and labels, and
gains the versions with new content and the labels with new names. A new config gets the document's active version.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from prompts.content.version import VersionContent
from prompts.errors import LabelProtectedError
from prompts.labels import set_label
from prompts.models import PromptConfig, PromptVersion
from prompts.selectors import version_content
from prompts.services import activate_version, add_version, create_config, locked_config, require_composable

FORMAT = "prompt-gateway/prompts"
FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class NumberedContent:
    number: int
    content: VersionContent


@dataclass(frozen=True, slots=True)
class ImportedLabel:
    name: str
    number: int
    is_protected: bool


@dataclass(frozen=True, slots=True)
class ImportedConfig:
    name: str
    description: str
    active: int | None
    versions: Sequence[NumberedContent]
    labels: Sequence[ImportedLabel] = ()


@dataclass(frozen=True, slots=True)
class ImportedConfigOutcome:
    """A config's outcome, done or planned; the numbers are the document's."""

    name: str
    created: bool
    versions_added: tuple[int, ...]
    versions_skipped: tuple[int, ...]
    labels_added: tuple[str, ...]


def export_prompts(project_id: UUID, config_id: UUID | None = None) -> dict[str, Any]:
    configs = PromptConfig.objects.for_project(project_id).select_related("active_version").order_by("name")
    if config_id is not None:
        configs = configs.filter(pk=config_id)
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "exported_at": timezone.now().isoformat().replace("+00:00", "Z"),
        "configs": [_exported(config) for config in configs.prefetch_related("versions", "labels__version")],
    }


def import_prompts(
    *, project_id: UUID, configs: Iterable[ImportedConfig], actor: str, is_administrator: bool, dry_run: bool = False
) -> list[ImportedConfigOutcome]:
    """Imports a whole document or nothing. Repeating it changes nothing. Raises LabelProtectedError if a
    non-administrator would add a protected label."""
    with transaction.atomic():
        ordered = sorted(configs, key=lambda item: item.name)
        importer = _Importer(project_id, actor, is_administrator, dry_run)
        outcomes = [importer.take_in(imported) for imported in ordered]
        if not dry_run:
            # A prompt may include one that stands behind it in the document.
            for imported in ordered:
                _check_includes(project_id, imported)
        return outcomes


def push_version(
    *, project_id: UUID, config_id: UUID, content: VersionContent, actor: str
) -> tuple[PromptVersion, bool]:
    """Returns the version with this content, and whether it was just added. Of several, the active one counts, else the
    newest. Raises as `add_version` does.

    Only the first version of a config is activated.
    """
    with transaction.atomic():
        # The config's row is locked, so that two simultaneous pushes do not both add a version.
        config, key = locked_config(config_id, project_id), _content_key(content)
        same = [row for row in config.versions.order_by("-number") if _content_key(version_content(row)) == key]
        if not same:
            return add_version(project_id=project_id, config_id=config_id, content=content, actor=actor), True
        return next((row for row in same if row.pk == config.active_version_id), same[0]), False


def _check_includes(project_id: UUID, imported: ImportedConfig) -> None:
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
        "labels": [
            {"name": label.name, "version_number": label.version.number, "is_protected": label.is_protected}
            for label in sorted(config.labels.all(), key=lambda label: label.name)
        ],
    }


@dataclass(frozen=True, slots=True)
class _Importer:
    project_id: UUID
    actor: str
    is_administrator: bool
    dry_run: bool

    def take_in(self, imported: ImportedConfig) -> ImportedConfigOutcome:
        # The config's row is locked, so that two simultaneous imports do not both add a version.
        configs = PromptConfig.objects.for_project(self.project_id).select_for_update()
        existing = configs.filter(name=imported.name).first()
        missing, present = _sorted_out(imported.versions, existing)
        labels = self._new_labels(imported, existing)
        if not self.dry_run:
            self._add(imported, existing, missing, present, labels)
        return ImportedConfigOutcome(
            name=imported.name,
            created=existing is None,
            versions_added=tuple(item.number for item in missing),
            versions_skipped=tuple(sorted(present)),
            labels_added=tuple(label.name for label in labels),
        )

    def _new_labels(self, imported: ImportedConfig, existing: PromptConfig | None) -> list[ImportedLabel]:
        there = set() if existing is None else set(existing.labels.values_list("name", flat=True))
        found = [label for label in imported.labels if label.name not in there]
        for label in found:
            if label.is_protected and not self.is_administrator:
                raise LabelProtectedError(label.name)
        return found

    def _add(
        self,
        imported: ImportedConfig,
        existing: PromptConfig | None,
        missing: Iterable[NumberedContent],
        present: Mapping[int, PromptVersion],
        labels: Iterable[ImportedLabel],
    ) -> None:
        config = existing or create_config(
            project_id=self.project_id, name=imported.name, description=imported.description, actor=self.actor
        )
        of_config: dict[str, Any] = {"project_id": self.project_id, "config_id": config.pk, "actor": self.actor}
        versions = dict(present)
        for item in missing:
            versions[item.number] = add_version(**of_config, content=item.content, check_includes=False)
        if existing is None and imported.active is not None:
            activate_version(
                **of_config,
                version_id=versions[imported.active].pk,
                reason="active in the import",
                check_includes=False,
            )
        for label in labels:
            set_label(
                **of_config,
                name=label.name,
                number=versions[label.number].number,
                is_administrator=self.is_administrator,
                is_protected=label.is_protected,
                reason="label of the import",
            )


def matched(
    wanted: Iterable[NumberedContent], stored: Iterable[NumberedContent]
) -> tuple[list[NumberedContent], dict[int, int]]:
    """Returns the versions that are not stored, and the others' stored numbers by their number in the document.
    Repetitions count: a return to an old text is a version."""
    there: dict[str, list[int]] = {}
    for item in sorted(stored, key=lambda item: -item.number):
        there.setdefault(_content_key(item.content), []).append(item.number)
    missing: list[NumberedContent] = []
    present: dict[int, int] = {}
    for item in sorted(wanted, key=lambda item: item.number):
        numbers = there.get(_content_key(item.content))
        if numbers:
            present[item.number] = numbers.pop()
        else:
            missing.append(item)
    return missing, present


def _sorted_out(
    versions: Iterable[NumberedContent], existing: PromptConfig | None
) -> tuple[list[NumberedContent], dict[int, PromptVersion]]:
    rows = {} if existing is None else {row.number: row for row in existing.versions.all()}
    missing, numbers = matched(versions, [NumberedContent(at, version_content(row)) for at, row in rows.items()])
    return missing, {number: rows[at] for number, at in numbers.items()}


def _content_key(content: VersionContent) -> str:
    """Equal for versions with the same effect; a commit message has none."""
    served: Mapping[str, Any] = {name: value for name, value in asdict(content).items() if name != "commit_message"}
    return json.dumps(served)
