"""One repair of a project's figures at a time: two that delete and insert the same rows would count them twice.

A row in the SQL database, taken by a conditional update, so that it holds between hosts. It runs out by itself: who
died with it does not stop repairs for ever.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from uuid import UUID

from django.utils import timezone

from analytics.errors import RepairBusyError
from analytics.models import RepairLease

# Longer than the statements of one repair may take together.
_HELD_FOR = timedelta(minutes=30)
_LOOK_EVERY_SECONDS = 0.1


@contextmanager
def repair_lease(project_id: UUID, *, wait_seconds: float = 30.0) -> Iterator[None]:
    """Raises RepairBusyError when another has it for longer than `wait_seconds`."""
    holder = uuid.uuid4()
    deadline = time.monotonic() + wait_seconds
    RepairLease.objects.get_or_create(project_id=project_id)
    while not _take(project_id, holder):
        if time.monotonic() > deadline:
            raise RepairBusyError("Another deletion or repair of this project is going on. It is done afterwards.")
        time.sleep(_LOOK_EVERY_SECONDS)
    try:
        yield
    finally:
        RepairLease.objects.filter(project_id=project_id, holder=holder).update(expires_at=timezone.now())


def _take(project_id: UUID, holder: UUID) -> bool:
    now = timezone.now()
    free = RepairLease.objects.filter(project_id=project_id, expires_at__lte=now)
    return free.update(holder=holder, expires_at=now + _HELD_FOR) == 1
