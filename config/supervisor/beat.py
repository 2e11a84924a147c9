"""A scheduler for Celery beat that continues when its file or its broker refuses writes."""

from __future__ import annotations

import logging
from typing import Any

from celery.beat import PersistentScheduler, SchedulingError
from typing_extensions import override

logger = logging.getLogger("config.beat")


class SteadyScheduler(PersistentScheduler):
    """Celery's scheduler, whose file only stores when each task ran last. On a full disk beat runs without the file,
    and a broker that refuses (MISCONF, OOM, READONLY) or is unreachable is logged once instead of with every task."""

    _remembering = True
    _sending = True

    @override
    def setup_schedule(self) -> None:
        try:
            super().setup_schedule()
        except Exception as error:
            self._note_remembering(error)
            self._store: Any = _NoFile()
            super().setup_schedule()

    @override
    def sync(self) -> None:
        try:
            super().sync()
        except Exception as error:
            self._note_remembering(error)
        else:
            self._note_remembering(None)

    @override
    def close(self) -> None:
        try:
            super().close()
        except Exception as error:
            self._note_remembering(error)

    def _open_schedule(self) -> Any:
        if isinstance(self._store, _NoFile):
            return self._store
        return super()._open_schedule()  # type: ignore[misc]  # the types leave out what is not public

    @override
    def apply_entry(self, entry: Any, producer: Any = None) -> None:
        try:
            self.apply_async(entry, producer=producer, advance=False)
        except SchedulingError as error:
            if self._sending:
                logger.warning("broker.refused error=%s", type(error.__cause__ or error.__context__ or error).__name__)
            self._sending = False
        else:
            if not self._sending:
                logger.warning("broker.recovered")
            self._sending = True

    def _note_remembering(self, error: Exception | None) -> None:
        if error is not None and self._remembering:
            logger.warning("schedule.not_kept error=%s", type(error).__name__)
        elif error is None and not self._remembering and not isinstance(self._store, _NoFile):
            logger.warning("schedule.kept_again")
        self._remembering = error is None


class _NoFile(dict[str, Any]):
    """The schedule of a beat whose file could not be written; the next start creates the file."""

    def sync(self) -> None:
        """Does nothing, because there is no file to write to."""

    def close(self) -> None:
        """Does nothing, because there is no file to close."""
