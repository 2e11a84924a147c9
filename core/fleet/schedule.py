"""When each task of beat's schedule ran last, for whoever schedules next."""

from __future__ import annotations

from datetime import datetime

from django.db import IntegrityError, transaction

from core.fleet.tables import ScheduledRun


def last_runs() -> dict[str, datetime]:
    """Returns when each task was last sent. Raises the database's errors."""
    return dict(ScheduledRun.objects.values_list("name", "ran_at"))


def claim_run(name: str, *, before: datetime | None, at: datetime) -> bool:
    """Returns whether the caller may send a task whose last run was `before`; of several that know the same last run,
    one may. Raises the database's errors."""
    if before is not None:
        return bool(ScheduledRun.objects.filter(name=name, ran_at=before).update(ran_at=at))
    try:
        with transaction.atomic():
            ScheduledRun.objects.create(name=name, ran_at=at)
    except IntegrityError:
        return False
    return True
