"""The batches that wait for one destination, oldest first, each an immutable file.

A batch is written hidden, gets its name once its source is removed, and is deleted once the collector has taken it.
There is no other state, so a kill at any moment leaves each span in one place.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from analytics.spool.durable import replace, sync_folder, write

_NAMED, _HIDDEN = ".batch", ".new"
_STATE, _GONE = "state.json", "gone.json"


class Counts(msgspec.Struct):
    """One destination's spans on this host, since its folder was made. Times are Unix seconds, 0.0 for never; the
    columns of `TraceDestinationStatus` have the same meanings."""

    sent: int = 0
    dropped: int = 0
    rejected: int = 0
    last_success: float = 0.0
    last_error: str = ""
    last_error_at: float = 0.0


class State(msgspec.Struct):
    counts: Counts
    waiting_spans: int = 0
    waiting_bytes: int = 0
    oldest: float = 0.0


_decoder = msgspec.json.Decoder(State)


@dataclass(frozen=True, slots=True)
class Batch:
    """`at` is when the batch's records were handed over, in Unix seconds; `size` is in bytes."""

    path: Path
    at: float
    spans: int
    size: int

    @property
    def id(self) -> str:
        """The id sent with the batch: the same at every try, another for each destination."""
        return str(uuid.uuid5(uuid.UUID(self.path.parent.name), self.path.stem))


class Outbox:
    """The batches of one destination, after which the folder is named. `waiting` is in order, by file name.

    `unmade` are the stems of files whose batches are made again. Raises OSError.
    """

    def __init__(self, folder: Path, unmade: Collection[str]) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder = folder
        self.counts = _read_counts(folder / _STATE)
        for hidden in folder.glob(f"*{_HIDDEN}"):
            if _source(hidden) in unmade:
                hidden.unlink()
            else:
                hidden.rename(hidden.with_suffix(_NAMED))
        found = sorted(folder.glob(f"*{_NAMED}"), key=_order)
        self.waiting = {path.name: _batch(path) for path in found}

    def draft(self, source: str, bodies: Iterable[tuple[bytes, int]]) -> list[Path]:
        """Writes batches, hidden until `publish`; `bodies` pairs bytes with a number of spans.

        On OSError the caller must call `discard`.
        """
        drafts = []
        for number, (body, spans) in enumerate(bodies):
            path = self.folder / f"{source}-{number}-{spans}{_HIDDEN}"
            write(path, [body])
            drafts.append(path)
        if drafts:
            sync_folder(self.folder)
        return drafts

    def discard(self, source: str) -> None:
        for draft in self.folder.glob(f"{source}-*{_HIDDEN}"):
            draft.unlink()

    def publish(self, drafts: Iterable[Path]) -> None:
        for draft in drafts:
            path = draft.rename(draft.with_suffix(_NAMED))
            self.waiting[path.name] = _batch(path)

    def remove(self, batch: Batch) -> None:
        batch.path.unlink(missing_ok=True)
        self.waiting.pop(batch.path.name, None)

    def overdue(self, *, max_bytes: int, before: float) -> Iterator[Batch]:
        """Yields the oldest batches, those beyond `max_bytes` or older than `before` (Unix seconds)."""
        size = sum(batch.size for batch in self.waiting.values())
        for batch in list(self.waiting.values()):
            if size <= max_bytes and batch.at >= before:
                return
            size -= batch.size
            yield batch

    def state(self) -> State:
        waiting = self.waiting.values()
        return State(
            self.counts,
            sum(batch.spans for batch in waiting),
            sum(batch.size for batch in waiting),
            min((batch.at for batch in waiting), default=0.0),
        )

    def save(self, state: State) -> None:
        replace(self.folder / _STATE, msgspec.json.encode(state))


def retire(folder: Path) -> None:
    """Removes a deleted destination's folder with its waiting batches. Raises OSError.

    Its counts are added to those of all deleted destinations, so that the host's sums never fall.
    """
    gone, counts = _read_counts(folder.parent / _GONE), _read_counts(folder / _STATE)
    sums = Counts(gone.sent + counts.sent, gone.dropped + counts.dropped, gone.rejected + counts.rejected)
    replace(folder.parent / _GONE, msgspec.json.encode(State(sums)))
    shutil.rmtree(folder)


def read_states(export: Path) -> list[State]:
    found = []
    for path in (*export.glob(f"*/{_STATE}"), export / _GONE):
        with suppress(OSError, msgspec.DecodeError):
            found.append(_decoder.decode(path.read_bytes()))
    return found


def _read_counts(path: Path) -> Counts:
    try:
        return _decoder.decode(path.read_bytes()).counts
    except (FileNotFoundError, msgspec.DecodeError):
        return Counts()


def _source(path: Path) -> str:
    return path.stem.rsplit("-", 2)[0]


def _order(path: Path) -> tuple[int, str, int]:
    source, number, _ = path.stem.rsplit("-", 2)
    return int(source.partition("-")[0]), source, int(number)


def _batch(path: Path) -> Batch:
    at = int(path.stem.partition("-")[0]) / 1_000_000
    return Batch(path, at, int(path.stem.rpartition("-")[2]), path.stat().st_size)
