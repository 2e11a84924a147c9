"""Typed readers of environment variables. A malformed value stops the start with the variable's name.

Each variable can also be given as `NAME_FILE`, the file that holds it (secrets of Docker, Kubernetes and systemd), or
as `NAME_COMMAND`, a command that prints it (`vault`, the clouds' own programs). Either is read once for a process and
its forks, and again by `read_again`.
"""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TypeVar
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from core.secret_files import read_secret_file

T = TypeVar("T")

_ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[A-Za-z0-9.\-_\[\]:]+")
_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})
_COMMAND_SECONDS = 60.0
# The texts of the variables that a file or a command has given.
_given: dict[str, str] = {}


class InvalidVariable(ImproperlyConfigured):
    """The operator's environment is wrong. The message is one line with the variable and its expected value."""


def report_in_one_line() -> None:
    """Ends any program that an InvalidVariable stops with its message, without a traceback."""
    report = sys.excepthook

    def report_error(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        if isinstance(error, InvalidVariable):
            print(error, file=sys.stderr)  # noqa: T201 - the log is not set up before the settings are read
        else:
            report(kind, error, traceback)

    sys.excepthook = report_error


def read_again() -> dict[str, str]:
    """Reads all variables given by files and commands again, and returns those that changed.

    Raises InvalidVariable if one cannot be read.
    """
    return {name: fresh for name, former in _given.items() if (fresh := _from_outside(name)) != former}


def give(values: Mapping[str, str]) -> dict[str, str]:
    """Sets the values of `read_again`, here or in another process, for settings that are read from now on.

    Returns the former values of these variables.
    """
    former = {name: _given[name] for name in values if name in _given}
    _given.update(values)
    return former


def _read(name: str, default: T, convert: Callable[[str], T]) -> T:
    raw = _raw(name)
    if not raw:
        return default
    try:
        return convert(raw)
    except ValueError as error:
        # The value may be a secret: the message names the variable and what was expected, never what was found.
        raise InvalidVariable(f"Environment variable {name}: {error}") from None


def _raw(name: str) -> str:
    if not os.environ.get(f"{name}_FILE") and not os.environ.get(f"{name}_COMMAND"):
        return os.environ.get(name, "").strip()
    if name not in _given:
        _given[name] = _from_outside(name)
    return _given[name]


def _from_outside(name: str) -> str:
    file, command = os.environ.get(f"{name}_FILE", "").strip(), os.environ.get(f"{name}_COMMAND", "").strip()
    if file and command:
        raise InvalidVariable(f"Environment variables {name}_FILE and {name}_COMMAND: set one of them, not both")
    return _from_file(name, file) if file else _from_command(name, command)


def _from_file(name: str, file: str) -> str:
    try:
        held = read_secret_file(file)
    except OSError as error:
        raise InvalidVariable(f"Environment variable {name}_FILE: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidVariable(f"Environment variable {name}_FILE: expected a file of UTF-8 text") from None
    if not held:
        # Whoever writes it anew may have emptied it first: the default, such as a SQLite of this host, would be wrong.
        raise InvalidVariable(f"Environment variable {name}_FILE: the file is empty")
    return held


def _from_command(name: str, command: str) -> str:
    variable = f"Environment variable {name}_COMMAND"
    try:
        ran = subprocess.run(  # noqa: S602 - the operator's own command, with pipes where they want them
            command,
            shell=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            timeout=_COMMAND_SECONDS,
            check=True,
        )
        printed = ran.stdout.decode().strip()
    except subprocess.CalledProcessError as error:
        raise InvalidVariable(f"{variable}: the command ended with exit code {error.returncode}") from None
    except subprocess.TimeoutExpired:
        raise InvalidVariable(f"{variable}: the command took longer than {_COMMAND_SECONDS:.0f} seconds") from None
    except UnicodeDecodeError:
        raise InvalidVariable(f"{variable}: expected the command to print UTF-8 text") from None
    if not printed:
        raise InvalidVariable(f"{variable}: the command printed nothing")
    return printed


def text(name: str, default: str = "") -> str:
    return _read(name, default, str)


def boolean(name: str, default: bool) -> bool:
    def convert(raw: str) -> bool:
        if raw.lower() in _TRUE:
            return True
        if raw.lower() in _FALSE:
            return False
        raise ValueError("expected one of 1, 0, true, false, yes, no, on, off")

    return _read(name, default, convert)


def integer(name: str, default: int, *, minimum: int | None = None, maximum: int | None = None) -> int:
    def convert(raw: str) -> int:
        try:
            value = int(raw)
        except ValueError:
            raise ValueError("expected a whole number") from None
        _check_range(value, minimum, maximum)
        return value

    return _read(name, default, convert)


def number(name: str, default: float, *, minimum: float | None = None, maximum: float | None = None) -> float:
    def convert(raw: str) -> float:
        try:
            value = float(raw)
        except ValueError:
            raise ValueError("expected a number") from None
        if value != value or value in (float("inf"), float("-inf")):
            raise ValueError("expected a finite number")
        _check_range(value, minimum, maximum)
        return value

    return _read(name, default, convert)


def choice(name: str, default: str, allowed: tuple[str, ...]) -> str:
    spelling = {option.lower(): option for option in allowed}

    def convert(raw: str) -> str:
        if raw.lower() not in spelling:
            raise ValueError(f"expected one of {', '.join(allowed)}")
        return spelling[raw.lower()]

    return _read(name, default, convert)


def matching(name: str, default: str, pattern: str, expected: str) -> str:
    def convert(raw: str) -> str:
        if not re.fullmatch(pattern, raw):
            raise ValueError(f"expected {expected}")
        return raw

    return _read(name, default, convert)


def strings(name: str, default: list[str]) -> list[str]:
    return _read(name, default, lambda raw: [item.strip() for item in raw.split(",") if item.strip()])


def origins(name: str) -> list[str]:
    """Returns origins as browsers send them (`https://app.example.com`), or `*`; none by default."""

    def convert(raw: str) -> list[str]:
        found = [item.strip() for item in raw.split(",") if item.strip()]
        if not all(item == "*" or _ORIGIN.fullmatch(item) for item in found):
            raise ValueError("expected origins such as https://app.example.com, without a path, or *")
        return found

    return _read(name, [], convert)


def path(name: str, default: T) -> Path | T:
    def convert(raw: str) -> Path | T:
        return Path(raw).expanduser().absolute()

    otherwise: Path | T = default
    return _read(name, otherwise, convert)


def make_folder(name: str, folder: Path) -> None:
    """Makes a missing folder at or below the one that the variable `name` holds.

    Raises InvalidVariable if that fails, or if this user may not write into the folder.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise InvalidVariable(
            f"Environment variable {name}: cannot write into the folder {folder}: {error.strerror}"
        ) from None


def url(name: str, *, schemes: tuple[str, ...]) -> str | None:
    def convert(raw: str) -> str | None:
        try:
            parts = urlsplit(raw)
            _ = parts.port
        except ValueError:
            # urllib's own messages quote parts of the address, and it may hold a password.
            raise ValueError("expected an address of one host, with a port from 0 to 65535 or none") from None
        if parts.scheme not in schemes:
            raise ValueError(f"expected an address that starts with {' or '.join(s + ':' for s in schemes)}")
        return raw

    return _read(name, None, convert)


def parsed(name: str, convert: Callable[[str], T], default: T) -> T:
    """`convert` raises ValueError with what it expected, never with what it found, which may be secret."""
    return _read(name, default, convert)


def secret(name: str) -> str | None:
    return _read(name, None, str)


def _check_range(value: float, minimum: float | None, maximum: float | None) -> None:
    if minimum is not None and value < minimum:
        raise ValueError(f"expected at least {minimum}")
    if maximum is not None and value > maximum:
        raise ValueError(f"expected at most {maximum}")
