from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tqdm import tqdm

from analytics.clickhouse.backup import Progress


class Steps:
    def __init__(self, write: Callable[[str], object]) -> None:
        self.write = write

    @contextmanager
    def rows(self, what: str, total: int | None = None) -> Iterator[Callable[[int], object]]:
        with self._bar(what, "row", total) as bar:
            yield bar.update

    @contextmanager
    def bytes(self, what: str, total: int | None = None) -> Iterator[Callable[[Progress], None]]:
        with self._bar(what, "B", total) as bar:

            def show(progress: Progress) -> None:
                bar.update(progress.bytes - bar.n)

            yield show

    def _bar(self, what: str, unit: str, total: int | None) -> Any:
        # `disable=None` shows a bar on a terminal alone.
        return tqdm(desc=what, unit=unit, unit_scale=True, total=total, disable=None, file=sys.stderr)
