"""Ships the spool of a lost host from another host: its folder, or its second copy on object storage."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from analytics.clickhouse.late_figures import settle
from analytics.request_log.columns import Columns, rows_of
from analytics.shipper.already_stored import missing
from analytics.shipper.loop import Insert, Shipper, SpoolLockedError, insert_into_store
from analytics.shipper.second_copy import Piece, piece_of
from analytics.shipper.spool_status import read_status
from analytics.spool import names
from analytics.spool.reader import is_finished
from analytics.spool.shipper_state import State, StateFile
from core.storage import Folder, Place, StorageError


class AdoptionError(Exception):
    pass


@dataclass(frozen=True)
class Adopted:
    shipped: int
    dead: int


def adopt(place: Place, scratch: Path, *, with_spans: bool, begun: Callable[[Shipper], object]) -> Adopted:
    """Ships the whole spool. `begun` gets the shipper, so that it can be stopped.

    A folder is shipped as its own host would have: a batch in progress is sent again under its token. A second copy
    does not know the batches, so records that are already in the request log are left out.

    Raises AdoptionError, StorageError and ValueError for a damaged state.
    """
    if isinstance(place, Folder):
        _require_orphan(place.path)
        return _ship(place.path, with_spans, begun, insert_into_store)
    scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="adopted-", dir=scratch) as folder:
        pieces = _fetch(place, Path(folder))
        absent = _Missing()
        adopted = _ship(Path(folder), with_spans, begun, absent.insert)
        if adopted.dead:
            raise AdoptionError(f"{place.address}: {adopted.dead} records are damaged, and the copy stays.")
        if not names.list_files(Path(folder), names.SEGMENT):
            for name in pieces:
                place.delete(name)
        return Adopted(absent.inserted, adopted.dead)


def _ship(directory: Path, with_spans: bool, begun: Callable[[Shipper], object], insert: Insert) -> Adopted:
    try:
        shipper = Shipper(directory, insert=insert, with_spans=with_spans)
    except SpoolLockedError as error:
        raise AdoptionError(str(error)) from error
    begun(shipper)
    try:
        shipper.drain()
    finally:
        shipper.close()
    settle()
    return Adopted(shipper.shipped, read_status(directory).dead_letters)


def _require_orphan(directory: Path) -> None:
    if not directory.is_dir():
        raise AdoptionError(f"{directory}: there is no such folder.")
    files = [path for ending in (names.SEGMENT, names.INFLIGHT) for path in names.list_files(directory, ending)]
    if not files and not (directory / "shipper.lock").exists():
        raise AdoptionError(f"{directory}: this is no spool: give the folder that the host had as SPOOL_DIR.")
    if living := [path.name for path in files if not is_finished(path)]:
        raise AdoptionError(f"{directory}: a process still writes to {living[0]}: this host is not gone.")


def _fetch(place: Place, directory: Path) -> list[str]:
    found: dict[str, Piece] = {}
    for name in place.sizes(""):
        if (piece := piece_of(name)) is None:
            raise AdoptionError(f"{place.address}: {name} is no piece of a spool.")
        found[name] = piece
    spools = sorted({piece.spool for piece in found.values()})
    if not spools:
        raise AdoptionError(f"{place.address}: there is no second copy of a spool.")
    if len(spools) > 1:
        raise AdoptionError(f"{place.address}: has pieces of several spools: give one of them, as {spools[0]} there.")
    offsets: dict[str, int] = {}
    for name, piece in sorted(found.items(), key=lambda one: one[1]):
        content = place.read(name)
        if content is None:
            raise StorageError(f"{place.address}: {name} has vanished: does its host live?")
        with (directory / piece.segment).open("r+b" if piece.segment in offsets else "wb") as file:
            file.seek(piece.start)
            file.write(content)
        offsets.setdefault(piece.segment, piece.start)
    StateFile(directory).save(State(offsets))
    return list(found)


class _Missing:
    def __init__(self) -> None:
        self.inserted = 0

    def insert(self, columns: Columns, token: str) -> None:
        absent = missing(columns)
        if absent:
            insert_into_store(absent, token)
        self.inserted += rows_of(absent)
