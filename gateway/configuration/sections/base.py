from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar
from uuid import UUID

from rest_framework.serializers import BaseSerializer

from core.errors import ValidationError
from core.models import Project
from gateway.configuration.problems import Path, within
from gateway.configuration.secrets import Secret, read_secret, settled

ACTOR = "command:apply"
Values = dict[str, Any]
Differences = dict[str, tuple[Any, Any]]
Shape = TypeVar("Shape", bound=BaseSerializer[Any])


@dataclass(frozen=True, slots=True)
class Added:
    words: str

    def __str__(self) -> str:
        return self.words


@dataclass
class NewKeys:
    """The plain texts of new API keys by project and name; None if none may be made."""

    made: dict[str, dict[str, str]] | None = field(default=None, repr=False)


@dataclass
class Section(ABC):
    """A section of one project, with a single entry that always exists and has an empty name.

    Values have the same form in the file and in the tables: an omitted field has its default, an omitted secret is left
    out. EntriesSection has named entries.
    """

    project: Project
    new_keys: NewKeys = field(default_factory=NewKeys)

    name: ClassVar[str]
    # The fields that the defaults have no value for.
    without_default: ClassVar[tuple[str, ...]] = ()
    defaults: ClassVar[Mapping[str, Any]] = {}
    secrets: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def fields(cls) -> frozenset[str]:
        return frozenset({*cls.without_default, *cls.defaults, *cls.secrets})

    @property
    def project_id(self) -> UUID:
        return self.project.pk

    @abstractmethod
    def read(self, name: str, given: Mapping[str, Any], path: Path) -> Values: ...

    @abstractmethod
    def stored(self) -> Mapping[str, Values]: ...

    @abstractmethod
    def change(self, name: str, values: Values, differences: Differences) -> None: ...

    def finish(self, names: Sequence[str], wanted: Mapping[str, Values], path: Path) -> None:
        """Checks the entries `names` after all were made or changed. Raises InvalidConfigurationError."""
        return

    def differences(self, wanted: Values, stored: Values) -> Differences:
        return {
            name: (stored.get(name), value)
            for name, value in wanted.items()
            if name not in stored or stored[name] != value
        }

    def settle(self, wanted: Values, stored: Values | None, path: Path) -> Values:
        there = stored or {}
        return {name: settled(value, there.get(name), (*path, name)) for name, value in wanted.items()}

    def is_exported(self, values: Values) -> bool:
        return True

    def exported(self, name: str, values: Values) -> Values:
        return {field: value for field, value in values.items() if self.defaults.get(field, ...) != value}

    def _given_secrets(self, given: Mapping[str, Any], path: Path) -> tuple[Values, dict[str, Secret]]:
        found = {name: read_secret(given[name], (*path, name)) for name in self.secrets if given.get(name) is not None}
        return {name: value for name, value in given.items() if name not in self.secrets}, found


class EntriesSection(Section):
    @abstractmethod
    def create(self, name: str, values: Values) -> None: ...

    @abstractmethod
    def delete(self, name: str) -> None: ...

    def new_differences(self, wanted: Values) -> Differences:
        return {
            name: (None, value)
            for name, value in wanted.items()
            if name not in self.defaults or self.defaults[name] != value
        }

    def unused(self, wanted: Iterable[str], stored: Mapping[str, Values]) -> list[str]:
        named = set(wanted)
        return [name for name in stored if name not in named]


def refuse_change(differences: Differences, *names: str) -> None:
    """Raises ValidationError for fields that can only be set at creation."""
    for name in names:
        if name in differences:
            problem = f"Stays {differences[name][0]}: give the entry another name, or delete it first."
            raise ValidationError(f"{name}: {problem}", details={name: [problem]})


def checked(serializer: type[Shape], data: Mapping[str, Any], path: Path) -> Any:
    with within(path):
        made = serializer(data=data)
        made.is_valid(raise_exception=True)
        return made.validated_data


def told_apart(rows: Iterable[Any], mark: Any) -> dict[str, Any]:
    found: dict[str, list[Any]] = {}
    for row in rows:
        found.setdefault(row.name, []).append(row)
    return {(name if len(same) == 1 else f"{name} ({mark(row)})"): row for name, same in found.items() for row in same}
