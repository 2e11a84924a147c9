"""Plans what a file changes, in transactions that are rolled back, and then applies all of it in one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from django.db import transaction

from core.audit.entries import write_of_command
from core.audit.recording import recording
from core.errors import ConflictError
from core.models import NAME_CHARACTERS, Project
from core.services import register_project
from gateway.configuration.document import Source
from gateway.configuration.plan import ProjectPlan, bring_to
from gateway.configuration.problems import InvalidConfigurationError, Path, Problem
from gateway.configuration.sections.base import NewKeys
from gateway.configuration.written import FORMAT, FORMAT_VERSION

Projects = Mapping[str, Mapping[str, Any]]
# Each entry of a file is a change that somebody decided on.
_MAX_AUDITED = 100_000


def projects_of(source: Source) -> Projects:
    values = source.values
    if not isinstance(values, Mapping):
        raise InvalidConfigurationError([Problem((), "Is no object: a configuration has format and projects.")])
    expected = {"format": FORMAT, "format_version": FORMAT_VERSION}
    for name, value in expected.items():
        if values.get(name) != value:
            raise InvalidConfigurationError([Problem((name,), f"Must be {value}.")])
    for name in values:
        if name not in (*expected, "projects"):
            raise InvalidConfigurationError([Problem((name,), "There is no such field beside the projects.")])
    return _checked(values.get("projects"))


def entries_of(projects: Projects) -> int:
    return sum(
        len(section) if isinstance(section, Mapping) and name != "settings" else 1
        for project in projects.values()
        for name, section in project.items()
        if section is not None or name == "settings"
    )


def plan(projects: Projects, *, prune: bool, makes_keys: bool, done: Callable[[], object]) -> list[ProjectPlan]:
    found, problems = [], []
    # Services log what they do, and nothing of it is done.
    with recording(), _without_log():
        for name, given in projects.items():
            try:
                with transaction.atomic():
                    found.append(_bring(name, given, prune, NewKeys({} if makes_keys else None), done))
                    transaction.set_rollback(True)
            except InvalidConfigurationError as error:
                problems += error.problems
    if problems:
        raise InvalidConfigurationError(problems)
    return found


def carry_out(
    plans: Sequence[ProjectPlan],
    projects: Projects,
    *,
    prune: bool,
    new_keys: AbstractContextManager[NewKeys],
    command: str,
    done: Callable[[], object],
) -> None:
    """Applies the plans in one transaction and writes the audit log.

    `new_keys` is left before the commit, so that every valid key has been shown to somebody. Raises ConflictError if
    somebody else changed a project meanwhile.
    """
    with recording(max_rows=_MAX_AUDITED) as collected, transaction.atomic(), new_keys as keys:
        for planned in plans:
            if _bring(planned.name, projects[planned.name], prune, keys, done) != planned:
                raise ConflictError(f"The project {planned.name} was changed meanwhile: look at a new plan first.")
    write_of_command(command, collected.made)


def _bring(
    name: str, given: Mapping[str, Any], prune: bool, new_keys: NewKeys, done: Callable[[], object]
) -> ProjectPlan:
    project = Project.objects.select_for_update().filter(name=name).first()
    is_new = project is None
    if project is None:
        project = Project(name=name)
        register_project(project, is_described="integrations" in given)
    changes, unnamed = bring_to(project, given, prune=prune, new_keys=new_keys, done=done)
    return ProjectPlan(name, is_new, changes, unnamed)


def _checked(given: Any) -> Projects:
    path: Path = ("projects",)
    if not isinstance(given, Mapping) or not given:
        raise InvalidConfigurationError([Problem(path, "Must be an object of at least one project by name.")])
    found = {}
    for name, project in given.items():
        if project is not None and not isinstance(project, Mapping):
            raise InvalidConfigurationError([Problem((*path, name), "Must be an object of sections.")])
        if not 0 < len(name.strip()) <= NAME_CHARACTERS or name != name.strip() or not name.isprintable():
            problem = f"The name of a project has 1 to {NAME_CHARACTERS} printable characters."
            raise InvalidConfigurationError([Problem((*path, name), problem)])
        found[name] = project or {}
    return found


@contextmanager
def _without_log() -> Iterator[None]:
    before = logging.root.manager.disable
    logging.disable(logging.INFO)
    try:
        yield
    finally:
        logging.disable(before)
