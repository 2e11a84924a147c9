"""The state of the shipper: one small file, replaced as a whole and synced, before and after each batch.

`plans` are the batches being shipped, as fixed before their first try: a retry after any crash sends the same bytes
under the same token, by which ClickHouse knows them. There are several plans only after a batch was halved.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from analytics.spool.durable import replace


class Part(msgspec.Struct, frozen=True):
    """A range of bytes of one segment."""

    segment: str
    start: int
    end: int


class Plan(msgspec.Struct, frozen=True):
    parts: tuple[Part, ...]

    @property
    def size(self) -> int:
        return sum(part.end - part.start for part in self.parts)

    @property
    def token(self) -> str:
        """Returns the deduplication token: the same bytes of the same segments have the same token."""
        return hashlib.sha256(msgspec.json.encode(self.parts)).hexdigest()


class State(msgspec.Struct, frozen=True):
    """The state of the shipper. `offsets` are, for each segment, the bytes that need not be read again."""

    offsets: dict[str, int] = {}
    plans: tuple[Plan, ...] = ()


class StateFile:
    def __init__(self, directory: Path) -> None:
        self._path = directory / "shipper.state"

    def load(self) -> State:
        """Returns the saved state. Raises ValueError for a damaged file: guessing would lose records or double them."""
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=State)
        except FileNotFoundError:
            return State()
        except msgspec.DecodeError as error:
            raise ValueError(f"{self._path} is damaged: {error}") from error

    def save(self, state: State) -> None:
        """Saves the state so that it survives a loss of power. Raises OSError, and then the last state is kept."""
        replace(self._path, msgspec.json.encode(state))
