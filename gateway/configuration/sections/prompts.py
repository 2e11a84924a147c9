"""Versions never change: content identifies a version, and new content is added as a new version.

Numbers in the file are only names, for `active_version` and the labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any
from uuid import UUID

from gateway.configuration.problems import InvalidConfigurationError, Path, Problem, within
from gateway.configuration.sections.base import ACTOR, Added, Differences, EntriesSection, Values, checked
from prompts.content.version import VersionContent
from prompts.labels import remove_label, set_label
from prompts.models import PromptConfig
from prompts.selectors import version_content
from prompts.serializers import ImportedConfigSerializer
from prompts.services import (
    activate_version,
    add_version,
    create_config,
    delete_config,
    require_composable,
    update_config,
)
from prompts.transfer import NumberedContent, matched

_REASON = "the configuration file"
_EMPTY = asdict(VersionContent())


class PromptsSection(EntriesSection):
    name = "prompts"
    without_default = ("versions", "active_version", "labels")
    defaults = {"description": ""}

    def read(self, name: str, given: Mapping[str, Any], path: Path) -> Values:
        versions = _numbered(given.get("versions"), (*path, "versions"))
        labels = _labels(given.get("labels"), (*path, "labels"))
        body = {
            "name": name,
            "description": "" if given.get("description") is None else given["description"],
            "versions": versions,
            "active_version_number": given.get("active_version"),
            "labels": [{"name": label, **value} for label, value in labels.items()],
        }
        try:
            data = checked(ImportedConfigSerializer, body, path)
        except InvalidConfigurationError as error:
            raise InvalidConfigurationError(
                Problem(_as_in_file(one.path, path, list(labels)), one.text) for one in error.problems
            ) from None
        values: Values = {
            "description": data["description"],
            "versions": [NumberedContent(one["version_number"], one["content"]) for one in data["versions"]],
        }
        if data.get("active_version_number") is not None:
            values["active_version"] = data["active_version_number"]
        if "labels" in given:
            values["labels"] = {
                one["name"]: {"version": one["version_number"], "protected": one["is_protected"]}
                for one in data["labels"]
            }
        return values

    def stored(self) -> Mapping[str, Values]:
        configs = PromptConfig.objects.for_project(self.project_id).select_related("active_version").order_by("name")
        return {row.name: _values(row) for row in configs.prefetch_related("versions", "labels__version")}

    def differences(self, wanted: Values, stored: Values) -> Differences:
        found: Differences = {}
        if wanted["description"] != stored["description"]:
            found["description"] = stored["description"], wanted["description"]
        numbers, added = _places(wanted["versions"], stored["versions"])
        if added:
            first, last = added[0], added[-1]
            words = f"version {first}" if first == last else f"versions {first} to {last}"
            found["versions"] = len(stored["versions"]), Added(f"{words} added")
        active = numbers.get(wanted.get("active_version", 0))
        if active is not None and active != stored.get("active_version"):
            found["active_version"] = stored.get("active_version"), active
        for name, label in wanted.get("labels", {}).items():
            after = {**label, "version": numbers[label["version"]]}
            before = stored["labels"].get(name)
            if before != after:
                found[f"labels.{name}"] = before, after
        for name in self._unused_labels(wanted, stored):
            found[f"labels.{name}"] = stored["labels"][name], None
        return found

    def new_differences(self, wanted: Values) -> Differences:
        return self.differences(wanted, {"description": "", "versions": [], "labels": {}})

    def create(self, name: str, values: Values) -> None:
        create_config(project_id=self.project_id, name=name, description=values["description"], actor=ACTOR)
        self.change(name, values, self.new_differences(values))

    def change(self, name: str, values: Values, differences: Differences) -> None:
        row = PromptConfig.objects.for_project(self.project_id).get(name=name)
        of_config: dict[str, Any] = {"project_id": self.project_id, "config_id": row.pk, "actor": ACTOR}
        stored = [NumberedContent(version.number, version_content(version)) for version in row.versions.all()]
        for item in matched(values["versions"], stored)[0]:
            add_version(**of_config, content=item.content, check_includes=False)
        if "description" in differences:
            update_config(**of_config, description=values["description"])
        if "active_version" in differences:
            version_id = _version_id(row, differences["active_version"][1])
            activate_version(**of_config, version_id=version_id, reason=_REASON, check_includes=False)
        for field, (_, label) in differences.items():
            if field.startswith("labels."):
                _set_label(of_config, field.removeprefix("labels."), label)

    def finish(self, names: Sequence[str], wanted: Mapping[str, Values], path: Path) -> None:
        rows = PromptConfig.objects.for_project(self.project_id).filter(name__in=names).order_by("name")
        for row in rows:
            for place, item in enumerate(wanted[row.name]["versions"]):
                with within((*path, row.name, "versions", place)):
                    require_composable(self.project_id, row.pk, item.content.messages, item.content.variables)

    def delete(self, name: str) -> None:
        row = PromptConfig.objects.for_project(self.project_id).get(name=name)
        delete_config(project_id=self.project_id, config_id=row.pk, actor=ACTOR)

    def exported(self, name: str, values: Values) -> Values:
        found: Values = {"description": values["description"]} if values["description"] else {}
        found["versions"] = [_exported(item) for item in values["versions"]]
        if "active_version" in values:
            found["active_version"] = values["active_version"]
        found["labels"] = {
            label: {"version": at["version"], "protected": True} if at["protected"] else at["version"]
            for label, at in values["labels"].items()
        }
        return found

    def _unused_labels(self, wanted: Values, stored: Values) -> list[str]:
        if "labels" not in wanted:
            return []
        return [name for name in stored["labels"] if name not in wanted["labels"]]


def _values(row: PromptConfig) -> Values:
    versions = sorted(row.versions.all(), key=lambda version: version.number)
    values: Values = {
        "description": row.description,
        "versions": [NumberedContent(version.number, version_content(version)) for version in versions],
        "labels": {
            label.name: {"version": label.version.number, "protected": label.is_protected}
            for label in sorted(row.labels.all(), key=lambda label: label.name)
        },
    }
    if row.active_version is not None:
        values["active_version"] = row.active_version.number
    return values


def _places(wanted: Sequence[NumberedContent], stored: Sequence[NumberedContent]) -> tuple[dict[int, int], list[int]]:
    missing, present = matched(wanted, stored)
    last = max((item.number for item in stored), default=0)
    added = [last + place for place in range(1, len(missing) + 1)]
    return {**present, **dict(zip([item.number for item in missing], added, strict=True))}, added


def _version_id(row: PromptConfig, number: int) -> UUID:
    return row.versions.values_list("pk", flat=True).get(number=number)


def _set_label(of_config: dict[str, Any], name: str, label: Any) -> None:
    if label is None:
        remove_label(**of_config, name=name, is_administrator=True, reason=_REASON)
        return
    set_label(
        **of_config,
        name=name,
        number=label["version"],
        is_protected=label["protected"],
        is_administrator=True,
        reason=_REASON,
    )


def _exported(item: NumberedContent) -> Values:
    content = asdict(item.content)
    return {"number": item.number, **{name: value for name, value in content.items() if value != _EMPTY[name]}}


def _numbered(given: Any, path: Path) -> list[Any]:
    if not isinstance(given, list) or not given:
        raise InvalidConfigurationError([Problem(path, "Must be a list of at least one version.")])
    found = []
    for place, one in enumerate(given):
        if not isinstance(one, Mapping):
            raise InvalidConfigurationError([Problem((*path, place), "Must be an object.")])
        body = {name: value for name, value in one.items() if name != "number"}
        found.append({**body, "version_number": one.get("number", place + 1)})
    return found


def _labels(given: Any, path: Path) -> dict[str, dict[str, Any]]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidConfigurationError([Problem(path, "Must be an object of labels and numbers of versions.")])
    found = {}
    for name, one in given.items():
        at = one if isinstance(one, Mapping) else {"version": one}
        unknown = [field for field in at if field not in ("version", "protected")]
        if unknown:
            raise InvalidConfigurationError([Problem((*path, name, unknown[0]), "There is no such field.")])
        found[name] = {"version_number": at.get("version"), "is_protected": at.get("protected", False)}
    return found


_FIELDS = {"version_number": "number", "active_version_number": "active_version"}


def _as_in_file(path: Path, start: Path, labels: Sequence[str]) -> Path:
    inner = [_FIELDS.get(str(step), step) for step in path[len(start) :]]
    if inner[:1] == ["labels"] and len(inner) > 1 and isinstance(inner[1], int):
        inner = ["labels", labels[inner[1]], *("version" if step == "number" else step for step in inner[2:])]
    return (*start, *(step for step in inner if step != "name"))
