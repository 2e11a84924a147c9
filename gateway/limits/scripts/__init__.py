"""What Redis runs, one atomic script a question. `spend.lua` is part of each."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

_FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Script:
    text: bytes
    sha: bytes


def _load(name: str) -> Script:
    text = (_FOLDER / "spend.lua").read_bytes() + (_FOLDER / f"{name}.lua").read_bytes()
    # What Redis calls it (EVALSHA), not a signature.
    return Script(text, hashlib.sha1(text, usedforsecurity=False).hexdigest().encode())


ADMIT = _load("admit")
SETTLE = _load("settle")
RAISE = _load("raise")
RENEW = _load("renew")
SINCE = _load("since")
