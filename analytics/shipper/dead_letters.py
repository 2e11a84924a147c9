from __future__ import annotations

import logging
from pathlib import Path

from analytics.spool.reader import Frame

logger = logging.getLogger("analytics.shipper")


class DeadLetters:
    def __init__(self, directory: Path) -> None:
        self._directory = directory / "dead"

    def keep_frame(self, segment: Path, frame: Frame, reason: str) -> None:
        self._keep(f"{segment.stem}-{frame.start}", frame.meta + b"\n" + frame.request + b"\n" + frame.response, reason)
        logger.error("record.dead segment=%s offset=%d", segment.name, frame.start)

    def keep_damage(self, segment: Path, start: int, end: int) -> None:
        """For bytes between two good frames, or the torn end that a dead writer left."""
        with segment.open("rb") as file:
            file.seek(start)
            content = file.read(end - start)
        self._keep(f"{segment.stem}-{start}", content, f"No good frame in bytes {start} to {end} of {segment.name}.")
        logger.warning("segment.damaged segment=%s start=%d bytes=%d", segment.name, start, end - start)

    def _keep(self, name: str, content: bytes, reason: str) -> None:
        self._directory.mkdir(mode=0o700, exist_ok=True)
        for ending, data in ((".bytes", content), (".reason", reason.encode("utf-8", "replace"))):
            path = self._directory / (name + ending)
            path.touch(mode=0o600)
            path.write_bytes(data)
