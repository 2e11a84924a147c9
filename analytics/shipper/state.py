"""How far the shipper has come: one small file, replaced as a whole and synced, before and after each batch.

`plans` are the batches being shipped, as fixed before their first try: a retry after any crash sends the same bytes
under the same token, by which ClickHouse knows them. There is more than one only after a batch was halved.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from analytics.durable import replace


class Part(msgspec.Struct, frozen=True):
    """A range of bytes of one segment."""

    segment: str
    start: int
    end: int


class Plan(msgspec.Struct, frozen=True):
    parts: tuple[Part, ...]

    @property
    def token(self) -> str:
        """The deduplication token: the same bytes of the same segments have the same one."""
        return hashlib.sha256(msgspec.json.encode(self.parts)).hexdigest()


class State(msgspec.Struct, frozen=True):
    """`offsets`: per segment, the bytes that need not be looked at again."""

    offsets: dict[str, int] = {}
    plans: tuple[Plan, ...] = ()


class StateFile:
    def __init__(self, directory: Path) -> None:
        self._path = directory / "shipper.state"

    def load(self) -> State:
        """Raises ValueError for a file that cannot be read: guessing would lose records or double them."""
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=State)
        except FileNotFoundError:
            return State()
        except msgspec.DecodeError as error:
            raise ValueError(f"{self._path} is damaged: {error}") from error

    def save(self, state: State) -> None:
        """Returns when the state would survive a loss of power. Raises OSError; then the last one stands."""
        replace(self._path, msgspec.json.encode(state))
