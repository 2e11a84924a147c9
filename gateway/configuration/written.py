from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import yaml

from core.models import Project
from gateway.configuration.plan import sections_of
from gateway.configuration.problems import Path
from gateway.configuration.secrets import Secret
from gateway.configuration.sections.base import EntriesSection
from gateway.configuration.sections.settings import SettingsSection

FORMAT, FORMAT_VERSION = "prompt-gateway/configuration", 1
# What ends a line beside a line feed: a reader would make it one, unless it is escaped.
_BREAKS = frozenset("\r\x85\u2028\u2029")
_NOT_IN_A_VARIABLE = re.compile(r"[^A-Z0-9]+")


def exported(projects: Iterable[Project]) -> dict[str, Any]:
    """Secrets become references to variables that are named after their place."""
    variables: set[str] = set()
    return document({project.name: _project(project, variables) for project in projects})


def document(projects: Mapping[str, Any]) -> dict[str, Any]:
    return {"format": FORMAT, "format_version": FORMAT_VERSION, "projects": dict(projects)}


def referenced(values: Mapping[str, Any], project: str) -> dict[str, Any]:
    variables: set[str] = set()
    return {
        section: {name: _plain(value, (project, name), variables) for name, value in entries.items()}
        for section, entries in values.items()
    }


def settings_of(project: Project | None) -> dict[str, Any]:
    if project is None:
        return {}
    section = SettingsSection(project)
    found = section.exported("", section.stored()[""])
    return {name: value for name, value in found.items() if not isinstance(value, Secret)}


def as_yaml(values: Mapping[str, Any]) -> str:
    text: str = yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    return text


def _project(project: Project, variables: set[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for section, stored in sections_of(project):
        entries = {
            name: _plain(section.exported(name, values), (project.name, name), variables)
            for name, values in stored.items()
            if section.is_exported(values)
        }
        entry = entries if isinstance(section, EntriesSection) else entries.get("")
        if entry:
            found[section.name] = entry
    return found


def _plain(value: Any, path: Path, variables: set[str]) -> Any:
    if isinstance(value, Secret):
        return {"env": _variable(path, variables)}
    if isinstance(value, Mapping):
        return {str(name): _plain(inner, (*path, str(name)), variables) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner, (*path, place), variables) for place, inner in enumerate(value)]
    if isinstance(value, Decimal):
        return int(value) if value == int(value) else float(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return str(value) if isinstance(value, str) else value


def _variable(path: Path, variables: set[str]) -> str:
    name = _NOT_IN_A_VARIABLE.sub("_", "_".join(map(str, path)).upper()).strip("_")
    number, found = 2, name
    while found in variables:
        number, found = number + 1, f"{name}_{number}"
    variables.add(found)
    return found


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, indentless=False)


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = None
    if not _BREAKS.isdisjoint(value):
        style = '"'
    elif "\n" in value:
        # A block keeps no blanks at the ends of lines: the emitter quotes such a text itself.
        style = "|"
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)
