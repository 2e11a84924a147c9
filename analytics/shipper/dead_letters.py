"""What the shipper could not store, in the spool's folder `dead`: refused records and damaged bytes, each beside a file
with the reason.

A refused record is a segment of its own, whose name a segment of the spool may have: one rename gives it to the shipper
again, so that it is stored once, whatever is killed meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from analytics.spool import frames, names
from analytics.spool.reader import Frame, read_stretch

logger = logging.getLogger("analytics.shipper")

_DAMAGE, _REASON = ".bytes", ".reason"


@dataclass(frozen=True)
class Letter:
    """`frame` is the record; None for damaged bytes, which cannot be sent again."""

    name: str
    reason: str
    path: Path
    frame: Frame | None


class DeadLetters:
    def __init__(self, directory: Path) -> None:
        self._spool, self._directory = directory, directory / "dead"

    def keep_frame(self, segment: Path, frame: Frame, reason: str) -> None:
        path = self._directory / (_name(segment, frame.start) + names.SEGMENT)
        parts = frames.pack(frame.meta, frame.request, frame.response, frames.segment_seed(path))
        self._keep(path, b"".join(parts), reason)
        logger.error("record.dead segment=%s offset=%d", segment.name, frame.start)

    def keep_damage(self, segment: Path, start: int, end: int) -> None:
        """For bytes between two good frames, or the torn end that a dead writer left."""
        with segment.open("rb") as file:
            file.seek(start)
            content = file.read(end - start)
        path = self._directory / (_name(segment, start) + _DAMAGE)
        self._keep(path, content, f"No good frame in bytes {start} to {end} of {segment.name}.")
        logger.warning("segment.damaged segment=%s start=%d bytes=%d", segment.name, start, end - start)

    def letters(self) -> list[Letter]:
        return list(filter(None, map(self._letter, sorted(self._directory.glob(f"*{_REASON}")))))

    def send_again(self, letter: Letter) -> None:
        letter.path.rename(self._spool / letter.path.name)
        self._reason_of(letter.path).unlink()

    def drop(self, letter: Letter) -> None:
        letter.path.unlink()
        self._reason_of(letter.path).unlink()

    def _letter(self, reason: Path) -> Letter | None:
        text = reason.read_text(encoding="utf-8")
        for path in (reason.with_suffix(names.SEGMENT), reason.with_suffix(_DAMAGE)):
            if path.exists():
                found: Iterable[Frame] = read_stretch(path, 0, finished=True).frames if path.suffix != _DAMAGE else ()
                return Letter(reason.stem, text, path, next(iter(found), None))
        reason.unlink()  # Whoever sent the record again was killed before the reason was gone.
        return None

    def _reason_of(self, path: Path) -> Path:
        return path.with_suffix(_REASON)

    def _keep(self, path: Path, content: bytes, reason: str) -> None:
        self._directory.mkdir(mode=0o700, exist_ok=True)
        for file, data in ((path, content), (self._reason_of(path), reason.encode("utf-8", "replace"))):
            file.touch(mode=0o600)
            file.write_bytes(data)


def _name(segment: Path, start: int) -> str:
    """The segment's name has three parts, or four (`names`); the fourth gets the place of the record."""
    created, pid, token, *places = segment.stem.split("-")
    return "-".join((created, pid, token, "_".join((*places, str(start)))))
