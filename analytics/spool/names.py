"""The names of the spool's files.

`<unix µs>-<pid>-<token>.seg` is a segment, the same with `.inflight` a table of requests in flight. A process has one
token for all its files, which tells the shipper which segments belong to which table. A pid is not enough: containers
reuse pids after each restart.
"""

from __future__ import annotations

import os
import secrets
import time
from dataclasses import dataclass
from pathlib import Path

SEGMENT = ".seg"
INFLIGHT = ".inflight"
RESERVE = ".reserve"
RECOVERED = "-recovered"

_tokens: dict[int, str] = {}


@dataclass(frozen=True, order=True)
class SpoolName:
    created: int
    worker: str
    suffix: str


def worker_token() -> str:
    """Returns `<pid>-<random>` of this process; a forked child gets its own token."""
    pid = os.getpid()
    return _tokens.setdefault(pid, f"{pid}-{secrets.token_hex(4)}")


def new_path(directory: Path, suffix: str) -> Path:
    while True:
        path = directory / f"{time.time_ns() // 1000}-{worker_token()}{suffix}"
        if not path.exists():
            return path


def parse(path: Path) -> SpoolName | None:
    stem, dot, ending = path.name.partition(".")
    parts = stem.split("-")
    if not dot or len(parts) not in (3, 4) or not parts[0].isdigit():
        return None
    return SpoolName(int(parts[0]), f"{parts[1]}-{parts[2]}", "".join(f"-{part}" for part in parts[3:]) + dot + ending)


def list_files(directory: Path, ending: str) -> list[Path]:
    found = [path for path in directory.glob(f"*{ending}") if parse(path) is not None]
    return sorted(found, key=lambda path: (int(path.name.partition("-")[0]), path.name))
