"""A configuration says where each secret is found, and never contains one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from core.encryption.fernet import UndecryptableSecretError
from core.secret_files import UnusableFileError, read_secret_file
from gateway.configuration.problems import InvalidConfigurationError, Path, Problem
from integrations.access.credentials import MASK

_WAYS = ("env", "file")
_is_planning: ContextVar[bool] = ContextVar("is_planning", default=False)
_FORM = "Secrets do not stand in this file: write {env: NAME} or {file: PATH}."


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret and the words for its source.

    The value is None if the reference leads to nothing, so that the stored one stays, or if no encryption key decrypts
    the stored one.
    """

    value: str | None = field(repr=False)
    source: str = field(default="stored", compare=False)
    # True for what is stored already, which services let go to no other host than the one that it was entered for.
    is_kept: bool = field(default=False, compare=False)
    # True for one that may be missing, since nothing is stored.
    is_planned: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        return f"({self.source})"


@contextmanager
def without_secrets() -> Iterator[None]:
    """Lets a plan name the secrets that are not there, instead of failing at the first."""
    token = _is_planning.set(True)
    try:
        yield
    finally:
        _is_planning.reset(token)


def read_secret(given: Any, path: Path) -> Secret:
    """An empty text means no secret. Raises InvalidConfigurationError for other text, and for an unreadable file."""
    if isinstance(given, Secret):
        return given
    if given == "":
        return Secret("", "empty")
    way, name = next(iter(given.items())) if isinstance(given, Mapping) and len(given) == 1 else ("", "")
    if way not in _WAYS or not isinstance(name, str) or not name:
        raise InvalidConfigurationError([Problem(path, _FORM)])
    is_planned = _is_planning.get()
    if way == "env":
        return Secret(os.environ.get(name, "").strip() or None, f"the variable {name}", is_planned=is_planned)
    return Secret(_content(name, path), f"the file {name}", is_planned=is_planned)


def read_secrets(given: Any, path: Path) -> dict[str, Secret] | None:
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise InvalidConfigurationError([Problem(path, "Must be an object.")])
    names = [str(name).strip().lower() for name in given]
    if twice := [name for name in given if names.count(str(name).strip().lower()) > 1]:
        raise InvalidConfigurationError(Problem((*path, name), "Is there twice, in another writing.") for name in twice)
    return {name: read_secret(given[own], (*path, own)) for name, own in zip(names, given, strict=True)}


def stored_secret(read: Callable[[], str]) -> Secret:
    try:
        return Secret(read())
    except UndecryptableSecretError:
        return Secret(None)


def stored_secrets(names: Iterable[str], read: Callable[[], Mapping[str, str]]) -> dict[str, Secret]:
    try:
        return {name: Secret(value) for name, value in read().items()}
    except UndecryptableSecretError:
        return dict.fromkeys(names, Secret(None))


def settled(wanted: Any, stored: Any, path: Path) -> Any:
    """Replaces secrets whose reference leads to nothing by the stored ones.

    Raises InvalidConfigurationError if nothing is stored either.
    """
    if isinstance(wanted, Secret) and wanted.value is None:
        if isinstance(stored, Secret) and stored.value != "":
            return replace(stored, is_kept=True)
        if wanted.is_planned:
            # Services check what is tried out: this is a key, a URL and no other's secret.
            value = f"https://{uuid4().hex}.example.com/"
            return replace(wanted, value=value, source=f"{wanted.source}, which is not there")
        raise InvalidConfigurationError([Problem(path, f"Is needed, and {wanted.source} is not there or empty.")])
    if isinstance(wanted, Mapping):
        there = stored if isinstance(stored, Mapping) else {}
        return {name: settled(value, there.get(name), (*path, name)) for name, value in wanted.items()}
    return wanted


def plain(value: Any) -> Any:
    """Reveals each secret, for a service. A secret that stays becomes the mask that lists show of it."""
    if isinstance(value, Secret):
        return MASK if value.is_kept else value.value
    if isinstance(value, Mapping):
        return {name: plain(inner) for name, inner in value.items()}
    return value


def without_kept(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if not (isinstance(value, Secret) and value.is_kept)}


def _content(name: str, path: Path) -> str | None:
    try:
        return read_secret_file(name) or None
    except FileNotFoundError:
        return None
    except UnusableFileError as error:
        raise InvalidConfigurationError(
            [Problem(path, f"The file {name} holds no secret: {error.strerror}.")]
        ) from None
    except (OSError, ValueError):
        raise InvalidConfigurationError([Problem(path, f"The file {name} cannot be read.")]) from None
