from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from django.db import transaction

from core.models import Project
from gateway.configuration.problems import InvalidConfigurationError, Path, Problem, within
from gateway.configuration.sections.alert_channels import AlertChannelsSection
from gateway.configuration.sections.alerts import AlertsSection
from gateway.configuration.sections.api_keys import ApiKeysSection
from gateway.configuration.sections.base import Differences, EntriesSection, NewKeys, Section, Values
from gateway.configuration.sections.dashboards import DashboardsSection
from gateway.configuration.sections.end_users import EndUsersSection
from gateway.configuration.sections.integrations import IntegrationsSection
from gateway.configuration.sections.model_groups import ModelGroupsSection
from gateway.configuration.sections.prices import PricesSection
from gateway.configuration.sections.prompts import PromptsSection
from gateway.configuration.sections.settings import SettingsSection
from gateway.configuration.sections.teams import TeamsSection
from gateway.configuration.sections.trace_destinations import TraceDestinationsSection

# In the order in which they are applied: a section may name what stands above it.
SECTIONS: tuple[type[Section], ...] = (
    IntegrationsSection,
    PricesSection,
    ModelGroupsSection,
    SettingsSection,
    TeamsSection,
    ApiKeysSection,
    EndUsersSection,
    PromptsSection,
    AlertChannelsSection,
    AlertsSection,
    DashboardsSection,
    TraceDestinationsSection,
)


class Action(StrEnum):
    CREATE = "create"
    CHANGE = "change"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Change:
    """`name` is empty for the settings. `differences` are [before, after] by field."""

    section: str
    name: str
    action: Action
    differences: Differences = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProjectPlan:
    """`unnamed` counts the entries that the file does not name; they stay."""

    name: str
    is_new: bool
    changes: Sequence[Change]
    unnamed: int

    @property
    def is_any(self) -> bool:
        return self.is_new or bool(self.changes)


@dataclass(frozen=True, slots=True)
class _Wanted:
    section: Section
    path: Path
    entries: Mapping[str, Values]
    stored: Mapping[str, Values]

    def place(self, name: str) -> Path:
        return (*self.path, name) if name else self.path


def bring_to(
    project: Project, given: Mapping[str, Any], *, prune: bool, new_keys: NewKeys, done: Callable[[], object]
) -> tuple[list[Change], int]:
    """Applies a file to a project. Returns the changes, and the number of entries that the file does not name.

    The caller rolls the transaction back on InvalidConfigurationError. `done` is called twice for each entry.
    """
    path: Path = ("projects", project.name)
    _refuse_unknown(given, {kind.name for kind in SECTIONS}, path, "section")
    wanted = _settled(_read(project, given, path, new_keys, done))
    changes: list[Change] = []
    for one in wanted:
        changes += _create_and_change(one, done)
    unnamed = 0
    for one in reversed(wanted):
        if not isinstance(one.section, EntriesSection):
            continue
        unused = one.section.unused(one.entries, one.stored)
        if prune:
            changes += _delete(one.section, one.path, unused)
        else:
            unnamed += len(unused)
    return changes, unnamed


def sections_of(project: Project) -> Iterator[tuple[Section, Mapping[str, Values]]]:
    for kind in SECTIONS:
        section = kind(project)
        yield section, section.stored()


def _read(
    project: Project, given: Mapping[str, Any], path: Path, new_keys: NewKeys, done: Callable[[], object]
) -> list[_Wanted]:
    problems: list[Problem] = []
    found = []
    for kind in SECTIONS:
        if kind.name not in given:
            continue
        section, start = kind(project, new_keys), (*path, kind.name)
        entries: dict[str, Values] = {}
        for name, values in _entries(section, given[kind.name], start, problems):
            at = (*start, name) if name else start
            try:
                entries[name] = _entry(section, name, values, at)
            except InvalidConfigurationError as error:
                problems += error.problems
            done()
        found.append(_Wanted(section, start, entries, section.stored()))
    if problems:
        raise InvalidConfigurationError(problems)
    return found


def _settled(wanted: Sequence[_Wanted]) -> list[_Wanted]:
    problems: list[Problem] = []
    found = []
    for one in wanted:
        entries = {}
        for name, values in one.entries.items():
            try:
                entries[name] = one.section.settle(values, one.stored.get(name), one.place(name))
            except InvalidConfigurationError as error:
                problems += error.problems
        found.append(replace(one, entries=entries))
    if problems:
        raise InvalidConfigurationError(problems)
    return found


def _entries(section: Section, given: Any, path: Path, problems: list[Problem]) -> list[tuple[str, Any]]:
    if not isinstance(section, EntriesSection):
        return [("", {} if given is None else given)]
    if given is None:
        return []
    if not isinstance(given, Mapping):
        problems.append(Problem(path, "Must be an object of entries by name."))
        return []
    return list(given.items())


def _entry(section: Section, name: str, given: Any, path: Path) -> Values:
    values = {} if given is None else given
    if not isinstance(values, Mapping):
        raise InvalidConfigurationError([Problem(path, "Must be an object.")])
    _refuse_unknown(values, section.fields(), path, "field")
    with within(path):
        return section.read(name, values, path)


def _create_and_change(one: _Wanted, done: Callable[[], object]) -> Iterator[Change]:
    touched = []
    for name, values in one.entries.items():
        change: Change | None
        with within(one.place(name)):
            if isinstance(one.section, EntriesSection) and name not in one.stored:
                change = _created(one.section, name, values)
            else:
                change = _changed(one.section, name, values, one.stored[name])
        if change is not None:
            touched.append(name)
            yield change
        done()
    one.section.finish(touched, one.entries, one.path)


def _created(section: EntriesSection, name: str, values: Values) -> Change:
    section.create(name, values)
    return Change(section.name, name, Action.CREATE, section.new_differences(values))


def _changed(section: Section, name: str, values: Values, stored: Values) -> Change | None:
    differences = section.differences(values, stored)
    if not differences:
        return None
    section.change(name, values, differences)
    return Change(section.name, name, Action.CHANGE, differences)


def _delete(section: EntriesSection, path: Path, names: Sequence[str]) -> Iterator[Change]:
    """An entry that another one still needs is deleted after that one."""
    waiting = list(names)
    while waiting:
        refused: list[str] = []
        for name in waiting:
            try:
                with within((*path, name)), transaction.atomic():
                    section.delete(name)
            except InvalidConfigurationError:
                if len(refused) + 1 == len(waiting):
                    raise
                refused.append(name)
            else:
                yield Change(section.name, name, Action.DELETE)
        waiting = refused


def _refuse_unknown(given: Mapping[str, Any], known: set[str] | frozenset[str], path: Path, word: str) -> None:
    unknown = [name for name in given if name not in known]
    if unknown:
        there_are = ", ".join(sorted(known))
        raise InvalidConfigurationError(
            Problem((*path, name), f"There is no such {word}. There are: {there_are}.") for name in unknown
        )
