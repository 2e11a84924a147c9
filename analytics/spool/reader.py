"""Reads the frames of a segment and skips its damaged ranges.

While the writer lives, the reader waits for a frame that is cut short at the end of a segment; then it gives the frame
up. Damage in the middle is skipped at once, to the next frame whose checksum fits: frames are written in order, so a
frame that another one follows is complete. The skipped bytes are reported, to be kept for a person to look at.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from analytics.request_log.record import RequestRecord
from analytics.spool import frames


class Frame(msgspec.Struct, frozen=True, gc=False):
    start: int
    end: int
    meta: bytes
    request: bytes
    response: bytes

    def record(self) -> RequestRecord:
        return _decoder.decode(self.meta)


@dataclass(frozen=True)
class Stretch:
    start: int
    end: int
    frames: list[Frame] = field(default_factory=list)
    damage: list[tuple[int, int]] = field(default_factory=list)


_decoder = msgspec.json.Decoder(RequestRecord)


def is_finished(path: Path) -> bool:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(fd)
    return True


def read_stretch(
    path: Path,
    start: int,
    *,
    finished: bool,
    end: int | None = None,
    max_frames: int = 1 << 62,
    max_bytes: int = 1 << 62,
) -> Stretch:
    """Returns frames until a limit is met; at least one if there is one, however large.

    With `end`, the same bytes give the same frames as the first read. `finished` means that nothing will be appended:
    call `is_finished` before this, never after.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        limit = size if end is None else min(end, size)
        if start >= limit:
            return Stretch(start, start)
        with mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) as content:
            return _Scan(content, frames.segment_seed(path), limit, finished).read(start, max_frames, max_bytes)


@dataclass
class _Scan:
    content: mmap.mmap
    seed: int
    limit: int
    finished: bool

    def read(self, start: int, max_frames: int, max_bytes: int) -> Stretch:
        found: list[Frame] = []
        damage: list[tuple[int, int]] = []
        position = start
        while position < self.limit and len(found) < max_frames and (position - start < max_bytes or not found):
            frame = self.frame_at(position)
            if frame is None:
                resumed = self.next_frame(position + 1)
                if not self.finished:
                    if resumed == self.limit:
                        break
                    # A frame was cut short on a full disk and another one took its place since it was looked at.
                    if self.frame_at(position) is not None:
                        continue
                damage.append((position, resumed))
                position = resumed
            elif found and frame.end - start > max_bytes:
                break
            else:
                found.append(frame)
                position = frame.end
        return Stretch(start, position, found, damage)

    def frame_at(self, position: int) -> Frame | None:
        body = position + frames.HEADER.size
        if body > self.limit:
            return None
        magic, meta, request, response, check = frames.HEADER.unpack_from(self.content, position)
        end = body + meta + request + response
        if magic != frames.MAGIC or end > self.limit:
            return None
        content = self.content[body:end]
        if frames.checksum(self.seed, (meta, request, response), content) != check:
            return None
        return Frame(position, end, content[:meta], content[meta : meta + request], content[meta + request :])

    def next_frame(self, position: int) -> int:
        while (position := self.content.find(frames.MAGIC, position, self.limit)) >= 0:
            if self.frame_at(position) is not None:
                return position
            position += 1
        return self.limit


class _Identity(msgspec.Struct):
    request_id: str


_identity = msgspec.json.Decoder(_Identity)


def request_ids(path: Path) -> Iterator[str]:
    for frame in read_stretch(path, 0, finished=True).frames:
        yield _identity.decode(frame.meta).request_id
