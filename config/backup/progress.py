"""The progress of a backup or a restore: a bar on a terminal, and a line for each finished step."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tqdm import tqdm

from analytics.clickhouse.backup import Progress


class Steps:
    """Reports steps; `write` takes a line."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self.write = write

    @contextmanager
    def rows(self, what: str, total: int | None = None) -> Iterator[Callable[[int], object]]:
        """Yields the function that counts rows of a step."""
        with self._bar(what, "row", total) as bar:
            yield bar.update

    @contextmanager
    def bytes(self, what: str, total: int | None = None) -> Iterator[Callable[[Progress], None]]:
        """Yields the function that shows how far ClickHouse is."""
        with self._bar(what, "B", total) as bar:

            def show(progress: Progress) -> None:
                bar.update(progress.bytes - bar.n)

            yield show

    def _bar(self, what: str, unit: str, total: int | None) -> Any:
        # `disable=None` shows a bar on a terminal alone.
        return tqdm(desc=what, unit=unit, unit_scale=True, total=total, disable=None, file=sys.stderr)
