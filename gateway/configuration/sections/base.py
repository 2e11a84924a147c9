"""The base of the file's sections: entries, read from the file and from the tables in one form."""

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
    """A value of a plan that says in words what is added, where the values themselves would be too long."""

    words: str

    def __str__(self) -> str:
        return self.words


@dataclass
class NewKeys:
    """The plain texts of the API keys that were made, by project and name; None where none may be made."""

    made: dict[str, dict[str, str]] | None = field(default=None, repr=False)


@dataclass
class Section(ABC):
    """A section of one project. Values have the same form whether they are read from the file or from the tables: a
    field that the file leaves out has its default, and a secret that it leaves out is not among the values.

    Such a section has one entry, whose name is empty, and which is always there. EntriesSection has those that come
    and go."""

    project: Project
    new_keys: NewKeys = field(default_factory=NewKeys)

    name: ClassVar[str]
    # The fields that the defaults have no value for.
    without_default: ClassVar[tuple[str, ...]] = ()
    defaults: ClassVar[Mapping[str, Any]] = {}
    secrets: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def fields(cls) -> frozenset[str]:
        """Returns the fields that an entry of the file may have."""
        return frozenset({*cls.without_default, *cls.defaults, *cls.secrets})

    @property
    def project_id(self) -> UUID:
        return self.project.pk

    @abstractmethod
    def read(self, name: str, given: Mapping[str, Any], path: Path) -> Values:
        """Returns the values of an entry of the file. Raises InvalidConfigurationError, and what serializers raise."""

    @abstractmethod
    def stored(self) -> Mapping[str, Values]:
        """Returns the entries of the project's tables by name, in the order of the file."""

    @abstractmethod
    def change(self, name: str, values: Values, differences: Differences) -> None: ...

    def finish(self, names: Sequence[str], wanted: Mapping[str, Values], path: Path) -> None:
        """Checks the entries `names` once all have been made or changed. Raises InvalidConfigurationError."""
        return

    def differences(self, wanted: Values, stored: Values) -> Differences:
        """Returns the stored and the wanted value of each field that differs."""
        return {
            name: (stored.get(name), value)
            for name, value in wanted.items()
            if name not in stored or stored[name] != value
        }

    def settle(self, wanted: Values, stored: Values | None, path: Path) -> Values:
        """Returns the wanted values with what is stored where a reference to a secret leads to nothing."""
        there = stored or {}
        return {name: settled(value, there.get(name), (*path, name)) for name, value in wanted.items()}

    def is_exported(self, values: Values) -> bool:
        """Returns whether an entry belongs into the file."""
        return True

    def exported(self, name: str, values: Values) -> Values:
        """Returns what the file has of an entry: what differs from the defaults, the secrets as `Secret`."""
        return {field: value for field, value in values.items() if self.defaults.get(field, ...) != value}

    def _given_secrets(self, given: Mapping[str, Any], path: Path) -> tuple[Values, dict[str, Secret]]:
        """Returns an entry's fields without its secrets, and the secrets."""
        found = {name: read_secret(given[name], (*path, name)) for name in self.secrets if given.get(name) is not None}
        return {name: value for name, value in given.items() if name not in self.secrets}, found


class EntriesSection(Section):
    """A section of entries by name, which come and go."""

    @abstractmethod
    def create(self, name: str, values: Values) -> None: ...

    @abstractmethod
    def delete(self, name: str) -> None: ...

    def new_differences(self, wanted: Values) -> Differences:
        """Returns what the plan shows of a new entry."""
        return {
            name: (None, value)
            for name, value in wanted.items()
            if name not in self.defaults or self.defaults[name] != value
        }

    def unused(self, wanted: Iterable[str], stored: Mapping[str, Values]) -> list[str]:
        """Returns the entries that `--prune` takes away."""
        named = set(wanted)
        return [name for name in stored if name not in named]


def refuse_change(differences: Differences, *names: str) -> None:
    """Raises ValidationError for fields that are given once."""
    for name in names:
        if name in differences:
            problem = f"Stays {differences[name][0]}: give the entry another name, or delete it first."
            raise ValidationError(f"{name}: {problem}", details={name: [problem]})


def checked(serializer: type[Shape], data: Mapping[str, Any], path: Path) -> Any:
    """Returns the validated data. Raises InvalidConfigurationError with the fields below `path`."""
    with within(path):
        made = serializer(data=data)
        made.is_valid(raise_exception=True)
        return made.validated_data


def told_apart(rows: Iterable[Any], mark: Any) -> dict[str, Any]:
    """Returns rows by name. Where several have one name, each has its `mark` in brackets behind it."""
    found: dict[str, list[Any]] = {}
    for row in rows:
        found.setdefault(row.name, []).append(row)
    return {(name if len(same) == 1 else f"{name} ({mark(row)})"): row for name, same in found.items() for row in same}
