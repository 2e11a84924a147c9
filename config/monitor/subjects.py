from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from django.conf import settings
from prometheus_client.core import Metric

from analytics.monitoring import EVALUATIONS, SPOOL, TRACE_EXPORT, ping_store
from config.disks import disks
from core.processes.monitoring import ON_DISK, SECRETS, TASKS, Alarm, Found, Subject, gauge, ping_database
from gateway.shadow.monitoring import SHADOWS
from gateway.worker.monitoring import BUDGETS, ping_redis
from rollouts.monitoring import ROLLOUTS

# The seconds that a store is unreachable before its alarm begins, and reachable before the alarm ends.
_AWAY_SECONDS = 30.0
_DOWN_SECONDS = 60.0

Children = Callable[[], Mapping[str, tuple[bool, int]]]

STORES: dict[str, Callable[[], None]] = {
    "database": ping_database,
    "redis": ping_redis,
    "analytics": ping_store,
}
STORE_SECONDS = 5.0


def _disks() -> dict[str, Any]:
    elsewhere = {name: _room(folder) for name, folder in disks().items() if name != "VAR_DIR"}
    return {**_room(settings.VAR_DIR), "elsewhere": elsewhere}


def _room(folder: Path) -> dict[str, int]:
    found = os.statvfs(folder)
    return {"free_bytes": found.f_bavail * found.f_frsize, "total_bytes": found.f_blocks * found.f_frsize}


def _by_folder(found: Found) -> Mapping[str, Mapping[str, int]]:
    return {"VAR_DIR": found, **found["elsewhere"]}


def _disk_metrics(found: Found) -> Iterable[Metric]:
    rooms = _by_folder(found).items()
    free = [((folder,), room["free_bytes"]) for folder, room in rooms]
    yield gauge("disk_free_bytes", "What the file system of a folder has left.", ["folder"], free)
    total = [((folder,), room["total_bytes"]) for folder, room in rooms]
    yield gauge("disk_bytes", "The size of the file system of a folder.", ["folder"], total)


def _disk_alarms(found: Found) -> Iterable[Alarm]:
    for folder, room in _by_folder(found).items():
        if room["free_bytes"] < settings.DISK_LOW_BYTES:
            yield Alarm("disk_low", f"{room['free_bytes'] // 2**20} MiB are left for {folder}.", folder)


DISK = Subject("disk", _disks, 5.0, _disk_metrics, _disk_alarms, ON_DISK)


def children_subject(children: Children) -> Subject:
    def ask() -> dict[str, Any]:
        return {role: [is_up, restarts] for role, (is_up, restarts) in children().items()}

    return Subject("children", ask, 5.0, _child_metrics, _child_alarms)


def _child_metrics(found: Found) -> Iterable[Metric]:
    of_role = found.items()
    yield gauge("child_up", "Whether a child of `serve` runs.", ["role"], [((role,), up) for role, (up, _) in of_role])
    yield gauge(
        "child_restarts",
        "How often a child of `serve` was started again since the start.",
        ["role"],
        [((role,), restarts) for role, (_, restarts) in of_role],
    )


def _child_alarms(found: Found) -> Iterable[Alarm]:
    for role, (is_up, _) in found.items():
        if not is_up:
            yield Alarm("child_down", f"{role} does not stay up.", role, after=_DOWN_SECONDS)


def store_metrics(stores: Mapping[str, Mapping[str, Any]]) -> Iterable[Metric]:
    yield gauge(
        "store_up",
        "Whether a store answered when it was asked last: database (SQL), redis, analytics (ClickHouse).",
        ["store"],
        [((name,), bool(found["up"])) for name, found in stores.items()],
    )
    yield gauge(
        "store_answer_seconds",
        "How long it took to answer.",
        ["store"],
        [((name,), found["seconds"]) for name, found in stores.items() if found["up"]],
    )


def store_alarms(stores: Mapping[str, Mapping[str, Any]]) -> Iterable[Alarm]:
    for name, found in stores.items():
        if not found["up"]:
            yield Alarm("store_away", f"The {name} store does not answer.", name, after=_AWAY_SECONDS, is_shared=True)


SUBJECTS: tuple[Subject, ...] = (DISK, SPOOL, TRACE_EXPORT, TASKS, SECRETS, ROLLOUTS, SHADOWS, EVALUATIONS, BUDGETS)
