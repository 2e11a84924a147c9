"""The shipper's state: one small file, replaced atomically and synced, before and after each batch.

`plans` are the batches being shipped, fixed before their first try: a retry after any crash sends the same bytes under
the same token, by which ClickHouse deduplicates. There are several plans only after a batch was halved.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from analytics.spool.durable import replace


class Part(msgspec.Struct, frozen=True):
    segment: str
    start: int
    end: int


class Plan(msgspec.Struct, frozen=True):
    """An inserter may have the rows of a plan that is `handed_over`."""

    parts: tuple[Part, ...]
    handed_over: bool = False

    @property
    def size(self) -> int:
        return sum(part.end - part.start for part in self.parts)

    @property
    def token(self) -> str:
        """The deduplication token: the same bytes of the same segments always have the same one."""
        return hashlib.sha256(msgspec.json.encode(self.parts)).hexdigest()


class State(msgspec.Struct, frozen=True):
    """`offsets` maps segments to the bytes that need not be read again."""

    offsets: dict[str, int] = {}
    plans: tuple[Plan, ...] = ()


class StateFile:
    def __init__(self, directory: Path) -> None:
        self._path = directory / "shipper.state"

    def load(self) -> State:
        """Raises ValueError for a damaged file: a guess would lose records or duplicate them."""
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=State)
        except FileNotFoundError:
            return State()
        except msgspec.DecodeError as error:
            raise ValueError(f"{self._path} is damaged: {error}") from error

    def save(self, state: State) -> None:
        """The state survives a power loss. On OSError the last state is kept."""
        replace(self._path, msgspec.json.encode(state))
