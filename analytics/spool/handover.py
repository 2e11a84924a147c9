"""Hands the records of projects that export spans from the shipper to the exporter, each exactly once.

The shipper writes a batch's records to a hidden file once the store has them, saves the end of the batch, and then
renames the file to its visible name. After a crash, the hidden file of an unshipped batch is written again; any other
is complete. The exporter removes a file once it has its own copy.

The exporter lists the projects it wants in `wanted.json`, so the shipper needs no database.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from analytics.request_log.record import TELEMETRY
from analytics.spool import frames, names
from analytics.spool.durable import replace, sync_folder, write
from analytics.spool.reader import Frame

logger = logging.getLogger("analytics.spool")

FOLDER = "export"
# A record with larger bodies is handed over without them.
MAX_CONTENT_BYTES = 1024 * 1024

_HANDED, _HIDDEN = "handed", ".new"
_WANTED, _LOST = "wanted.json", "lost.json"


class Lost(msgspec.Struct, frozen=True):
    records: int = 0
    last: float = 0.0


class _Owner(msgspec.Struct):
    project_id: str
    source: str = ""


_owner = msgspec.json.Decoder(_Owner)
_wanted = msgspec.json.Decoder(dict[str, bool])
_lost = msgspec.json.Decoder(Lost)


class Handover:
    """The shipper's side. Never raises for a failing disk: the records themselves must not depend on the export."""

    def __init__(self, spool: Path, *, max_bytes: int) -> None:
        self._folder = spool / FOLDER
        self._max_bytes = max_bytes
        self._hidden: dict[str, Path] = {}
        self._known_at = -1
        self._projects: Mapping[str, bool] = {}
        self._not_counted = 0

    def recover(self, unshipped: Collection[str]) -> None:
        for hidden in (self._folder / _HANDED).glob(f"*{_HIDDEN}"):
            with suppress(OSError):
                if hidden.stem.rpartition("-")[2] in unshipped:
                    hidden.unlink()
                else:
                    hidden.rename(hidden.with_suffix(names.SEGMENT))

    def prepare(self, batch: Iterable[Frame], token: str) -> None:
        self._forget(token)
        projects = self._wanted()
        if not projects:
            return
        chosen = [found for frame in batch if (found := _chosen(frame, projects)) is not None]
        if not chosen:
            return
        folder = self._folder / _HANDED
        final = folder / f"{time.time_ns() // 1000}-{token}{names.SEGMENT}"
        hidden = final.with_suffix(_HIDDEN)
        try:
            if folder_bytes(folder) > self._max_bytes:
                raise OSError("the exporter is behind")
            seed = frames.segment_seed(final)
            write(hidden, (part for parts in chosen for part in frames.pack(*parts, seed)))
            sync_folder(folder)
        except OSError as error:
            hidden.unlink(missing_ok=True)
            logger.error("export.not_handed_over records=%d reason=%s", len(chosen), error.strerror or error)
            self._count_lost(len(chosen))
            return
        self._hidden[token] = hidden

    def publish(self, token: str) -> None:
        hidden = self._hidden.pop(token, None)
        if hidden is not None:
            try:
                hidden.rename(hidden.with_suffix(names.SEGMENT))
            except OSError as error:
                # The next shipper finds it.
                logger.error("export.not_published reason=%s", error.strerror)

    def _forget(self, token: str) -> None:
        hidden = self._hidden.pop(token, None)
        if hidden is not None:
            hidden.unlink(missing_ok=True)

    def _wanted(self) -> Mapping[str, bool]:
        path = self._folder / _WANTED
        try:
            changed = path.stat().st_mtime_ns
            if changed != self._known_at:
                self._projects, self._known_at = _wanted.decode(path.read_bytes()), changed
        except FileNotFoundError:
            self._projects, self._known_at = {}, -1
        except (OSError, msgspec.DecodeError) as error:
            logger.error("export.wanted_unreadable error=%s", type(error).__name__)
        return self._projects

    def _count_lost(self, records: int) -> None:
        self._not_counted += records
        with suppress(OSError):
            total = read_lost(self._folder.parent).records + self._not_counted
            replace(self._folder / _LOST, msgspec.json.encode(Lost(total, time.time())))
            self._not_counted = 0


def want(spool: Path, projects: Mapping[str, bool]) -> None:
    (spool / FOLDER / _HANDED).mkdir(parents=True, exist_ok=True, mode=0o700)
    replace(spool / FOLDER / _WANTED, msgspec.json.encode(projects))


def wanted(spool: Path) -> Mapping[str, bool]:
    """Returns the projects whose records are handed over, and whether with their texts."""
    try:
        return _wanted.decode((spool / FOLDER / _WANTED).read_bytes())
    except (OSError, msgspec.DecodeError):
        return {}


def handed(spool: Path) -> list[Path]:
    """Returns files of frames (`analytics.spool.reader`), oldest first. The reader removes each file."""
    found = (spool / FOLDER / _HANDED).glob(f"*{names.SEGMENT}")
    return sorted(found, key=lambda path: (int(path.name.partition("-")[0]), path.name))


def read_lost(spool: Path) -> Lost:
    try:
        return _lost.decode((spool / FOLDER / _LOST).read_bytes())
    except (FileNotFoundError, msgspec.DecodeError):
        return Lost()


def folder_bytes(folder: Path) -> int:
    total = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            # The exporter may have removed the file since the listing.
            with suppress(FileNotFoundError):
                total += entry.stat().st_size
    return total


def _chosen(frame: Frame, projects: Mapping[str, bool]) -> tuple[bytes, bytes, bytes] | None:
    try:
        owner = _owner.decode(frame.meta)
    except msgspec.DecodeError:
        return None  # It went to the dead letters.
    # The application has sent the span of its own call.
    if owner.project_id not in projects or owner.source == TELEMETRY:
        return None
    if not projects[owner.project_id] or len(frame.request) + len(frame.response) > MAX_CONTENT_BYTES:
        return frame.meta, b"", b""
    return frame.meta, frame.request, frame.response
