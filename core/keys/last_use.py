"""Last uses of keys: noted in memory and written in one UPDATE a minute, not once a request."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from datetime import datetime
from itertools import islice

from django.db import DatabaseError
from django.db.models import Case, DateTimeField, F, Value, When
from django.db.models.functions import Coalesce, Greatest

from core.models import ApiKey

logger = logging.getLogger("core.keys")

FLUSH_SECONDS = 60.0
# Each key takes three parameters, which keeps the statement far below the limit of any database.
_KEYS_PER_UPDATE = 1000


class LastUses:
    """Thread-safe; the gateway's loop and the management API share one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._noted: dict[int, datetime] = {}
        self._flushed_at: float | None = None

    def note(self, key_id: int, when: datetime) -> None:
        with self._lock:
            known = self._noted.get(key_id)
            if known is None or known < when:
                self._noted[key_id] = when

    def flush(self) -> int:
        with self._lock:
            self._flushed_at = time.monotonic()
            noted, self._noted = self._noted, {}
        try:
            _write(noted)
        except DatabaseError as error:
            for key_id, when in noted.items():
                self.note(key_id, when)
            logger.warning("last_use.not_written keys=%d error=%s", len(noted), type(error).__name__)
            return 0
        return len(noted)

    def flush_when_due(self) -> int:
        with self._lock:
            due = self._flushed_at is None or time.monotonic() - self._flushed_at >= FLUSH_SECONDS
        return self.flush() if due else 0


def _write(noted: Mapping[int, datetime]) -> None:
    items = iter(noted.items())
    while batch := dict(islice(items, _KEYS_PER_UPDATE)):
        noted_at = Case(
            *[When(pk=key_id, then=Value(when)) for key_id, when in batch.items()], output_field=DateTimeField()
        )
        # Another worker may have written a later time already.
        latest = Greatest(Coalesce(F("last_used_at"), noted_at), noted_at)
        ApiKey.objects.filter(pk__in=batch).update(last_used_at=latest)


_LAST_USES = LastUses()
note_use = _LAST_USES.note
flush_last_uses = _LAST_USES.flush
flush_last_uses_when_due = _LAST_USES.flush_when_due
