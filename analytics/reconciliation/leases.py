"""Serialises repairs of a project's figures: two that delete and insert the same rows would count them twice.

The lease is a row in the SQL database, taken by a conditional update, so it excludes workers on other hosts too. It
expires, so that a killed holder blocks repairs only for some minutes.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from uuid import UUID

from django.utils import timezone

from analytics.errors import RepairBusyError
from analytics.models import RepairLease

# A lease lasts longer than one step of a repair and is renewed between steps. A killed holder blocks others for this
# time.
_HELD_FOR = timedelta(minutes=5)
_LOOK_EVERY_SECONDS = 0.1


@contextmanager
def repair_lease(project_id: UUID, *, wait_seconds: float = 30.0) -> Iterator[Callable[[], None]]:
    """Takes the lease and yields a function that renews it.

    Raises RepairBusyError after `wait_seconds` if another holder has the lease. The function raises it if the lease
    expired and another holder took it.
    """
    holder = uuid.uuid4()
    deadline = time.monotonic() + wait_seconds
    RepairLease.objects.get_or_create(project_id=project_id)
    while not _take(project_id, holder):
        if time.monotonic() > deadline:
            raise RepairBusyError("Another deletion or repair of this project is running. This one is done after it.")
        time.sleep(_LOOK_EVERY_SECONDS)
    try:
        yield lambda: _renew(project_id, holder)
    finally:
        RepairLease.objects.filter(project_id=project_id, holder=holder).update(expires_at=timezone.now())


def _take(project_id: UUID, holder: UUID) -> bool:
    now = timezone.now()
    free = RepairLease.objects.filter(project_id=project_id, expires_at__lte=now)
    return free.update(holder=holder, expires_at=now + _HELD_FOR) == 1


def _renew(project_id: UUID, holder: UUID) -> None:
    held = RepairLease.objects.filter(project_id=project_id, holder=holder)
    if not held.update(expires_at=timezone.now() + _HELD_FOR):
        raise RepairBusyError("Another deletion or repair of this project took over. The rest is done after it.")
