"""A second copy of the waiting spool on object storage: if a host is lost, only the newest records are lost.

The shipper stores most records within four seconds, so only records that wait longer are copied, as all do while
ClickHouse is down. A piece of a segment is an object `<spool>/<segment>/<start>-<end>` (bytes), removed once the store
has it. The spool's id is in its folder, so a host that returns with an empty disk does not mistake the lost host's
pieces for its own.
"""

from __future__ import annotations

import logging
import re
import secrets
import threading
from pathlib import Path
from typing import NamedTuple

from analytics.spool import names
from analytics.spool.shipper_state import State, StateFile
from core.processes.background_tasks import keep_thread_running
from core.storage import Place, StorageError

logger = logging.getLogger("analytics.second_copy")

_MAX_PIECE = 32 << 20
_ID = "spool.id"
_NAME = re.compile(r"(?:([0-9a-f]+)/)?([0-9]+-[\w-]+\.seg)/([0-9]+)-([0-9]+)")


class Piece(NamedTuple):
    """The bytes from `start` to `end` of a segment. `spool` is empty for names below one spool's own folder."""

    spool: str
    segment: str
    start: int
    end: int

    @property
    def name(self) -> str:
        return f"{self.spool}/{self.segment}/{self.start:020}-{self.end:020}"


def piece_of(name: str) -> Piece | None:
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    spool, segment, start, end = found.groups()
    return Piece(spool or "", segment, int(start), int(end))


class SecondCopy:
    """Copies the spool in `directory` to `place` in a thread, until it is closed.

    Bytes are copied after they have waited `seconds`, at the latest twice that.
    """

    def __init__(self, directory: Path, place: Place, *, seconds: float) -> None:
        self._directory, self._place, self._seconds = directory, place, seconds
        self._spool = ""
        self._state = StateFile(directory)
        # The size of each segment when it was last looked at, and up to where it has been copied.
        self._sizes: dict[str, int] = {}
        self._copied: dict[str, int] = {}
        self._pieces: set[Piece] | None = None
        self._failed = False
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        self._thread = keep_thread_running("analytics.second_copy", self._run)

    def close(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def look(self) -> None:
        """Copies what has waited since the last look and removes what has been shipped. Raises StorageError."""
        pieces = self._known()
        state = self._state.load()
        sizes = {path.name: path.stat().st_size for path in names.list_files(self._directory, names.SEGMENT)}
        for segment, size in sizes.items():
            self._copy(segment, min(size, self._sizes.get(segment, 0)), state, pieces)
        self._sizes = sizes
        self._remove_shipped(state, pieces)

    def _copy(self, segment: str, end: int, state: State, pieces: set[Piece]) -> None:
        start = max(self._copied.get(segment, 0), state.offsets.get(segment, 0))
        while start < end:
            piece = Piece(self._spool, segment, start, min(end, start + _MAX_PIECE))
            with (self._directory / segment).open("rb") as file:
                file.seek(start)
                content = file.read(piece.end - start)
            self._place.write(piece.name, content)
            pieces.add(piece)
            self._copied[segment] = start = piece.end

    def _remove_shipped(self, state: State, pieces: set[Piece]) -> None:
        for piece in sorted(pieces):
            if piece.segment not in self._sizes or state.offsets.get(piece.segment, 0) >= piece.end:
                self._place.delete(piece.name)
                pieces.discard(piece)
        self._copied = {segment: end for segment, end in self._copied.items() if segment in self._sizes}

    def _known(self) -> set[Piece]:
        if self._pieces is None:
            self._spool = self._spool or _spool_id(self._directory)
            found = [piece for name in self._place.sizes("") if (piece := piece_of(name)) is not None]
            for other in sorted({piece.spool for piece in found} - {self._spool}):
                logger.warning("second_copy.of_a_lost_spool place=%s/%s", self._place.address, other)
            self._pieces = {piece for piece in found if piece.spool == self._spool}
            for piece in self._pieces:
                self._copied[piece.segment] = max(piece.end, self._copied.get(piece.segment, 0))
        return self._pieces

    def _run(self) -> None:
        while not self._ended.wait(self._seconds):
            try:
                self.look()
            except (StorageError, FileNotFoundError) as error:
                # A segment that was shipped and removed meanwhile is no failure: the next look does not find it.
                if isinstance(error, StorageError) and not self._failed:
                    logger.warning("second_copy.failed reason=%s", error)
                    self._failed = True
            else:
                if self._failed:
                    logger.info("second_copy.recovered")
                self._failed = False


def _spool_id(directory: Path) -> str:
    path = directory / _ID
    try:
        return path.read_text(encoding="ascii")
    except FileNotFoundError:
        draft = path.with_suffix(".draft")
        draft.write_text(secrets.token_hex(8), encoding="ascii")
        draft.replace(path)
        return path.read_text(encoding="ascii")
