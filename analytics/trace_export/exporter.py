"""The exporter: one process per spool that batches the records from the shipper and sends them."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import aiohttp
from django.conf import settings
from django.db import DatabaseError, IntegrityError, InterfaceError, connection, transaction
from django.db.models import Count, Max

from analytics.models import TraceDestination, TraceDestinationStatus
from analytics.spool.handover import FOLDER, handed, want
from analytics.trace_export.batches import Selection, make_batches, read_records
from analytics.trace_export.delivery import Target, open_session
from analytics.trace_export.destinations import headers_of
from analytics.trace_export.outbox import Outbox, State, retire
from analytics.trace_export.sender import Destination, Sender
from core.encryption.fernet import UndecryptableSecretError
from core.processes.background_tasks import keep_running

logger = logging.getLogger("analytics.trace_export")

FOLLOW_SECONDS = 2.0
_SPLIT_SECONDS = 0.25
_REPORT_SECONDS = 3.0
_LOCK = "exporter.lock"
_UNAVAILABLE = (DatabaseError, InterfaceError)

T = TypeVar("T")


Version = tuple[int, datetime | None]


def version_of_destinations() -> Version:
    """The value changes whenever a destination is added, changed or removed."""
    found = TraceDestination.objects.aggregate(number=Count("pk"), changed=Max("updated_at"))
    return found["number"], found["changed"]


def load_destinations() -> dict[UUID, Destination]:
    return {row.pk: _destination(row) for row in TraceDestination.objects.iterator()}


def save_status(destination_id: UUID, state: State) -> None:
    """Does nothing if the destination is gone."""
    counts = state.counts
    values: dict[str, Any] = {
        "waiting_spans": state.waiting_spans,
        "waiting_bytes": state.waiting_bytes,
        "oldest_waiting_at": _time(state.oldest),
        "sent_spans": counts.sent,
        "dropped_spans": counts.dropped,
        "rejected_spans": counts.rejected,
        "last_success_at": _time(counts.last_success),
        "last_error": counts.last_error,
        "last_error_at": _time(counts.last_error_at),
    }
    try:
        with transaction.atomic():
            TraceDestinationStatus.objects.update_or_create(
                destination_id=destination_id, host=settings.HOST_NAME, defaults=values
            )
    except IntegrityError:
        return  # The destination was removed meanwhile.


def _destination(row: TraceDestination) -> Destination:
    target: Target | None = None
    with suppress(UndecryptableSecretError):
        target = Target(row.endpoint, headers_of(row))
    selection = Selection(row.sampling_ratio, row.include_content)
    return Destination(row.pk, str(row.project_id), row.enabled, selection, target)


def _time(seconds: float) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds else None


class ExporterLockedError(Exception):
    pass


class Exporter:
    """The one exporter of a spool's directory. Raises ExporterLockedError if another one runs, and OSError."""

    def __init__(self, spool: Path) -> None:
        self._spool = spool
        self._folder = spool / FOLDER
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = _take_lock(self._folder / _LOCK)
        self._version: Version | None = None
        self._senders: dict[UUID, Sender] = {}
        self._tasks: dict[UUID, asyncio.Task[None]] = {}
        self._reported: dict[UUID, bytes] = {}
        # The database's connection belongs to the thread that opened it.
        self._database = ThreadPoolExecutor(1, "database")

    def close(self) -> None:
        self._database.shutdown()
        os.close(self._lock)

    async def run(self, stop: asyncio.Event) -> None:
        """Exports until `stop` is set, then waits for the answers to the batches in flight."""
        async with open_session() as session:
            work = [
                keep_running("export.follow", lambda: self._follow(session)),
                keep_running("export.split", self._split),
                keep_running("export.report", self._report),
            ]
            await stop.wait()
            for task in work:
                task.cancel()
            for sender in self._senders.values():
                sender.stop()
            await asyncio.gather(*work, *self._tasks.values(), return_exceptions=True)
        await self._report_once()

    async def _follow(self, session: aiohttp.ClientSession) -> None:
        while True:
            try:
                version = await self._ask(version_of_destinations)
                if version != self._version:
                    await self._use(await self._ask(load_destinations), session)
                    self._version = version
            except _UNAVAILABLE as error:
                # The destinations that are known stay.
                logger.warning("export.destinations_unknown error=%s", type(error).__name__)
            await asyncio.sleep(FOLLOW_SECONDS)

    async def _use(self, found: Mapping[UUID, Destination], session: aiohttp.ClientSession) -> None:
        wanted: dict[str, bool] = {}
        for one in found.values():
            if one.enabled:
                wanted[one.project_id] = wanted.get(one.project_id, False) or one.selection.include_content
            if one.id in self._senders:
                self._senders[one.id].change(one)
            else:
                self._begin(one, session)
        for gone in set(self._senders) - set(found):
            await self._end(gone)
        self._remove_folders(set(found))
        want(self._spool, wanted)

    def _begin(self, destination: Destination, session: aiohttp.ClientSession) -> None:
        outbox = Outbox(self._folder / str(destination.id), {path.stem for path in handed(self._spool)})
        sender = self._senders[destination.id] = Sender(destination, outbox, session)
        self._tasks[destination.id] = keep_running("export.send", sender.run)

    async def _end(self, destination_id: UUID) -> None:
        task = self._tasks.pop(destination_id)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        del self._senders[destination_id]
        self._reported.pop(destination_id, None)

    def _remove_folders(self, kept: set[UUID]) -> None:
        for folder in self._folder.iterdir():
            if _is_id(folder.name) and UUID(folder.name) not in kept:
                retire(folder)
                logger.info("export.destination_gone destination_id=%s", folder.name)

    async def _split(self) -> None:
        while True:
            paths = handed(self._spool) if self._version is not None else []
            for path in paths:
                await self._split_one(path)
            await asyncio.sleep(_SPLIT_SECONDS)

    async def _split_one(self, path: Path) -> None:
        """Publishes the batches after removing the file: a kill in between leaves the file or all batches."""
        senders = list(self._senders.values())
        _publish(path, await asyncio.to_thread(_draft, path, senders))

    async def _report(self) -> None:
        while True:
            await self._report_once()
            await asyncio.sleep(_REPORT_SECONDS)

    async def _report_once(self) -> None:
        for sender in list(self._senders.values()):
            state = sender.outbox.state()
            content = repr(state).encode()
            if self._reported.get(sender.destination.id) == content:
                continue
            sender.outbox.save(state)
            try:
                await self._ask(lambda: save_status(sender.destination.id, state))  # noqa: B023 - called at once
            except _UNAVAILABLE as error:
                logger.warning("export.status_not_saved error=%s", type(error).__name__)
                continue
            self._reported[sender.destination.id] = content

    async def _ask(self, question: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._database, _asked, question)


def _asked(question: Callable[[], T]) -> T:
    connection.close_if_unusable_or_obsolete()
    try:
        return question()
    except _UNAVAILABLE:
        connection.close()
        raise


def _draft(path: Path, senders: list[Sender]) -> list[tuple[Sender, list[Path]]]:
    drafts = []
    records = read_records(path)
    try:
        for sender in senders:
            destination = sender.destination
            of_project = records.get(destination.project_id)
            if of_project and destination.enabled:
                batches = make_batches(destination.project_id, of_project, destination.selection)
                drafts.append((sender, sender.outbox.draft(path.stem, batches)))
    except OSError:
        for sender in senders:
            sender.outbox.discard(path.stem)
        raise
    return drafts


def _publish(path: Path, drafts: list[tuple[Sender, list[Path]]]) -> None:
    path.unlink()
    for sender, drafted in drafts:
        sender.outbox.publish(drafted)
        sender.wake()


def _is_id(name: str) -> bool:
    try:
        UUID(name)
    except ValueError:
        return False
    return True


def _take_lock(path: Path) -> int:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise ExporterLockedError(f"Another exporter works on {path.parent}.") from None
    return fd
