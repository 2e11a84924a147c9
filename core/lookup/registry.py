from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar
from uuid import UUID

from core.roles import Right


class Kind(StrEnum):
    """The kinds of records that can be found, in the order in which they are listed."""

    REQUEST = "request"
    SESSION = "session"
    USER = "user"
    API_KEY = "api_key"
    PROMPT = "prompt"
    ROLLOUT = "rollout"


@dataclass(frozen=True, slots=True)
class Match:
    kind: Kind
    id: str
    label: str


Finder = Callable[[UUID, str], Sequence[Match]]
FinderType = TypeVar("FinderType", bound=Finder)

_finders: dict[Kind, tuple[Finder, Right]] = {}

MAX_CHARACTERS = 1024


def finds(kind: Kind, right: Right = Right.READ) -> Callable[[FinderType], FinderType]:
    """Decorates `(project_id, text)`, which finds a kind's records by id or name for callers with `right`. Raises
    ValueError for a kind that another function finds."""

    def register(finder: FinderType) -> FinderType:
        if _finders.setdefault(kind, (finder, right))[0] is not finder:
            raise ValueError(f"two functions find a {kind}")
        return finder

    return register


def look_up(
    project_id: UUID, text: str, rights: Collection[Right], kinds: Collection[Kind] = tuple(Kind)
) -> Sequence[Match]:
    finders = [_finders[kind] for kind in Kind if kind in _finders and kind in kinds]
    return [match for find, right in finders if right in rights for match in find(project_id, text)]


def as_uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
