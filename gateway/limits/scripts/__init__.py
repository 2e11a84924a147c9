"""The Lua scripts that Redis runs atomically, one for each operation. `spend.lua` is part of each."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import hiredis

Argument = bytes | str | int

_FOLDER = Path(__file__).parent
# The library's stub allows tuples of one member only.
_pack: Callable[[tuple[Argument, ...]], bytes] = hiredis.pack_command  # type: ignore[assignment]


def packed(words: tuple[Argument, ...]) -> bytes:
    command = _pack(words)
    return command[command.index(b"\n") + 1 :]


@dataclass(frozen=True, slots=True)
class Script:
    text: bytes
    _named: bytes
    _full: bytes

    def begun(self, words: int) -> bytes:
        return b"*%d\r\n%b" % (words + 2, self._named)

    def in_full(self, command: bytes) -> bytes:
        return command.replace(self._named, self._full, 1)


def _load(*names: str) -> Script:
    text = b"".join((_FOLDER / f"{name}.lua").read_bytes() for name in ("spend", *names))
    # The digest is the script's name in Redis (EVALSHA), not a signature.
    sha = hashlib.sha1(text, usedforsecurity=False).hexdigest()
    return Script(text, packed(("EVALSHA", sha)), packed(("EVAL", text)))


BATCH = _load("terms", "minute", "scope", "places", "settle", "admit", "near", "allowances", "batch")
DOUBT = _load("doubt")
LOOKED = _load("looked")
RAISE = _load("raise")
RENEW = _load("renew")
SINCE = _load("since")
# That of commands which run none.
NO_SCRIPT = Script(b"", b"", b"")
