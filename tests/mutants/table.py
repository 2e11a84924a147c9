from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

TABLE = Path(__file__).with_name("faults.toml")


class NotPlantedError(Exception):
    """Raised for a tree whose file does not have the text exactly once."""


class Fault(NamedTuple):
    """`old` in `file` becomes `new`, which one of `tests` must find. `before` is the file in older trees, empty if it
    has the same name."""

    number: int
    fault: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    before: str = ""


def faults() -> list[Fault]:
    rows = tomllib.loads(TABLE.read_text())["faults"]
    return [Fault(number, **{**row, "tests": tuple(row["tests"])}) for number, row in enumerate(rows, start=1)]


def place_of(fault: Fault, tree: Path) -> Path:
    for name in filter(None, (fault.file, fault.before)):
        path = tree / name
        if path.is_file() and path.read_text().count(fault.old) == 1:
            return path
    raise NotPlantedError(f"fault {fault.number}: {fault.file} in {tree} does not have its text exactly once")


@contextmanager
def planted(fault: Fault, tree: Path) -> Iterator[None]:
    """Restores the file with its time, by which Python finds that compiled code still fits. Raises NotPlantedError."""
    path = place_of(fault, tree)
    sound, state = path.read_text(), path.stat()
    try:
        path.write_text(sound.replace(fault.old, fault.new))
        yield
    finally:
        path.write_text(sound)
        os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
