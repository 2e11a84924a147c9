from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models.functions import Now

from core.fleet.tables import Host

# A host that ended in order is shown for a day, one that fell silent for a week.
_LEFT, _SILENT = timedelta(days=1), timedelta(days=7)
# Four reports that did not come, and what one may take (config/monitor/hosts.py).
_SILENT_AFTER = timedelta(seconds=45)
STATES = ("serving", "silent", "left")


def state_of(row: Host, now: datetime) -> str:
    if row.left_at is not None:
        return "left"
    return "silent" if now - row.seen_at > _SILENT_AFTER else "serving"


@dataclass(frozen=True, slots=True)
class SeenHost:
    name: str
    instance: str
    state: str
    seen_at: datetime
    report: dict[str, Any]


def report(
    name: str, *, instance: str, version: str, started_at: datetime, content: dict[str, Any], leaves: bool = False
) -> None:
    """Saves a host's report; `leaves` marks its last one. Raises the database's errors."""
    row = Host(
        name=name,
        instance=instance,
        version=version,
        started_at=started_at,
        seen_at=Now(),
        left_at=Now() if leaves else None,
        report=content,
    )
    changed = ["instance", "version", "started_at", "seen_at", "left_at", "report"]
    Host.objects.bulk_create([row], update_conflicts=True, unique_fields=["name"], update_fields=changed)


def seen_hosts() -> list[SeenHost]:
    """Returns the hosts by name without those gone for good, which it deletes. Raises the database's errors."""
    found, forgotten = [], []
    for row in Host.objects.annotate(now=Now()):
        if row.now - row.seen_at > (_LEFT if row.left_at else _SILENT):
            forgotten.append(row.pk)
        else:
            found.append(SeenHost(row.name, row.instance, state_of(row, row.now), row.seen_at, row.report))
    if forgotten:
        Host.objects.filter(pk__in=forgotten, seen_at__lt=Now() - _LEFT).delete()
    return found
