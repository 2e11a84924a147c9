"""The snapshots of one worker: found by key hash without I/O, replaced when the configuration changes.

They stay while the database is down, and are re-read at least every `SNAPSHOT_SECONDS` in case an announcement was
missed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from itertools import count
from typing import TypeVar
from uuid import UUID

from django.db import Error as DatabaseError
from django.db import InterfaceError

from core.errors import ServiceUnavailableError
from core.keys.services import KeyRecord
from core.processes.database_threads import in_database_thread
from gateway.snapshot import loader
from gateway.snapshot.project import PriceTable, ProjectSnapshot
from gateway.snapshot.prompts import ManagedPrompt, known_version
from prompts.selectors import PromptVersionRecord

logger = logging.getLogger("gateway.snapshot")
T = TypeVar("T")

_NEGATIVE_SECONDS = 30.0
_NEGATIVE_ENTRIES = 50_000
_IDLE_SECONDS = 600.0
# The number of threads that look keys up, and of keys that may wait for them: an attacker who tries keys out blocks
# neither the threads that read the configuration nor the database.
_KEY_LOOKUPS = 2
# The number of versions of prompts that a worker keeps because somebody named them by number.
_MAX_VERSIONS = 1000
_MAX_WAITING = 200

Found = tuple[ProjectSnapshot, KeyRecord]


class SnapshotStore:
    """Not thread-safe: an instance belongs to one event loop."""

    def __init__(self) -> None:
        self._by_project: dict[UUID, ProjectSnapshot] = {}
        self._by_hash: dict[str, Found] = {}
        # By the numbers of the ids, whose hashes need no call of Python's.
        self._used: dict[int, float] = {}
        self._unknown: dict[str, float] = {}
        self._loading: dict[str, asyncio.Future[None]] = {}
        self._reading: Counter[UUID] = Counter()
        self._serials = count(1)
        self._prices: PriceTable | None = None
        self._prices_serial = 0
        self._prices_mark: tuple[object, ...] | None = None
        self._versions: OrderedDict[tuple[str, int], PromptVersionRecord | None] = OrderedDict()
        self._changes_seen = 0
        self._database_away = False
        self._key_lookups = asyncio.Semaphore(_KEY_LOOKUPS)

    def find(self, key_hash: str) -> Found | None:
        return self._by_hash.get(key_hash)

    async def resolve(self, key_hash: str) -> Found | None:
        """Returns the project and key of a hash, reading the database the first time; None if there is no such key.

        Raises ServiceUnavailableError if the key is unknown here and the database cannot be read, or too many other
        keys wait for it.
        """
        found = self._by_hash.get(key_hash)
        if found is not None:
            return found
        known_unknown = self._unknown.get(key_hash)
        if known_unknown is not None and known_unknown > time.monotonic():
            return None
        name = f"key {key_hash}"
        if len(self._loading) >= _MAX_WAITING and name not in self._loading:
            raise ServiceUnavailableError("Too many unknown API keys; try again", headers={"retry-after": "1"})
        await self._once(name, lambda: self._load_key(key_hash))
        return self._by_hash.get(key_hash)

    async def project(self, project_id: UUID) -> ProjectSnapshot:
        if project_id not in self._by_project:
            await self._once(f"project {project_id}", lambda: self._load_project(project_id))
        return self._by_project[project_id]

    async def prompt_version(self, prompt: ManagedPrompt, number: int) -> PromptVersionRecord | None:
        """Returns None if the prompt has no such version. Versions never change, so one that was read is kept.

        Raises ServiceUnavailableError if it cannot be read.
        """
        found = known_version(prompt, number)
        if found is not None or not 1 <= number <= prompt.last_version:
            return found
        key = (prompt.config_id, number)
        while key not in self._versions:
            await self._once(f"version {key}", lambda: self._load_version(*key))
        self._versions.move_to_end(key)
        return self._versions[key]

    def note_use(self, project_id: UUID) -> None:
        self._used[project_id.int] = time.monotonic()

    async def refresh_project(self, project_id: UUID) -> None:
        self._changes_seen += 1
        self._unknown.clear()
        # A project that is being read for the first time may have been read before the change.
        if project_id in self._by_project or project_id in self._reading:
            await self._keep_on_failure(lambda: self._reload_project(project_id))

    async def load_prices(self) -> None:
        if self._prices is None:
            await self._read_prices()

    async def refresh_prices(self) -> None:
        await self._keep_on_failure(self._reload_prices)

    async def refresh_all(self) -> None:
        """Re-reads everything in use and drops projects that had no request for ten minutes.

        While the database is down nothing is dropped, since it could not be read again.
        """
        self._unknown.clear()
        await self._keep_on_failure(self._reload_all)

    async def renew_credentials(self) -> None:
        """Gives snapshots the keys that the machine's role has now. It needs no database, which may be away for longer
        than a key lasts."""
        for snapshot in [one for one in self._by_project.values() if one.is_ambient]:
            renewed = await in_database_thread(loader.with_current_keys, snapshot)
            if renewed is not snapshot and self._by_project.get(snapshot.project_id) is snapshot:
                self._keep(renewed)

    async def _reload_prices(self) -> None:
        await self._reread_prices()
        await self._reload_projects()

    async def _reread_prices(self) -> bool:
        """Returns whether the prices were read.

        On a failure the last prices stay, and changes of projects, such as revoked keys, are still applied.
        """
        try:
            await self._read_prices()
        except (DatabaseError, InterfaceError):
            raise
        except Exception:
            if self._prices is None:
                raise
            logger.exception("prices.unreadable")
            return False
        return True

    async def _reload_all(self) -> None:
        """Re-reads everything; the prices, thousands of rows that change once a day, only if they have changed."""
        mark = await in_database_thread(loader.prices_mark)
        self._forget_idle()
        if mark != self._prices_mark and await self._reread_prices():
            self._prices_mark = mark
        await self._reload_projects()

    def _forget_idle(self) -> None:
        limit = time.monotonic() - _IDLE_SECONDS
        for project_id in [p for p in self._by_project if self._used.get(p.int, limit) < limit]:
            self._forget(project_id)

    async def _reload_projects(self) -> None:
        for project_id in [*self._by_project, *(self._reading.keys() - self._by_project.keys())]:
            await self._reload_project(project_id)

    async def _reload_project(self, project_id: UUID) -> None:
        """An unreadable row costs its project the change, but neither its last snapshot nor the other projects."""
        try:
            await self._load_project(project_id)
        except (DatabaseError, InterfaceError):
            raise
        except Exception:
            logger.exception("project.unreadable project_id=%s", project_id)

    async def _load_key(self, key_hash: str) -> None:
        async with self._key_lookups:
            seen = self._changes_seen
            project_id = await in_database_thread(loader.project_of_key, key_hash)
        if project_id is None:
            if seen != self._changes_seen:
                # The key may have been made during the lookup: the next request looks it up again.
                return
            if len(self._unknown) >= _NEGATIVE_ENTRIES:
                self._unknown.clear()
            self._unknown[key_hash] = time.monotonic() + _NEGATIVE_SECONDS
            return
        await self._load_project(project_id)

    async def _load_version(self, config_id: str, number: int) -> None:
        self._versions[config_id, number] = await in_database_thread(loader.prompt_version, UUID(config_id), number)
        if len(self._versions) > _MAX_VERSIONS:
            self._versions.popitem(last=False)

    async def _load_project(self, project_id: UUID) -> None:
        """Of several concurrent loads the one that began last is kept, because the others may have missed a change."""
        prices = self._prices if self._prices is not None else await self._read_prices()
        serial = next(self._serials)
        self._reading[project_id] += 1
        try:
            snapshot = await in_database_thread(loader.load_project, project_id, prices, serial)
        finally:
            self._reading -= Counter((project_id,))
        current = self._by_project.get(project_id)
        if current is not None and current.serial > serial:
            return
        self._keep(snapshot)
        self._forget_composed()
        self._used.setdefault(project_id.int, time.monotonic())

    def _keep(self, snapshot: ProjectSnapshot) -> None:
        self._forget(snapshot.project_id)
        self._by_project[snapshot.project_id] = snapshot
        for key_hash, record in snapshot.keys.items():
            self._by_hash[key_hash] = (snapshot, record)
            self._unknown.pop(key_hash, None)

    def _forget_composed(self) -> None:
        for key in [key for key, version in self._versions.items() if version is not None and version.is_composed]:
            del self._versions[key]

    async def _read_prices(self) -> PriceTable:
        serial = next(self._serials)
        table = await in_database_thread(loader.load_prices)
        if self._prices is None or serial > self._prices_serial:
            self._prices, self._prices_serial = table, serial
        return self._prices

    def _forget(self, project_id: UUID) -> None:
        snapshot = self._by_project.pop(project_id, None)
        for key_hash in snapshot.keys if snapshot is not None else ():
            self._by_hash.pop(key_hash, None)

    async def _once(self, name: str, load: Callable[[], Awaitable[None]]) -> None:
        """Runs one load for a burst of cold requests: the first starts it, all wait for it, none can cancel it."""
        pending = self._loading.get(name)
        if pending is None:
            pending = asyncio.ensure_future(load())
            self._loading[name] = pending
            pending.add_done_callback(
                lambda done: (self._loading.pop(name, None), done.cancelled() or done.exception())
            )
        try:
            await asyncio.shield(pending)
        except (DatabaseError, InterfaceError) as error:
            self._note_database(away=True)
            raise ServiceUnavailableError("The configuration cannot be read at the moment; try again") from error
        self._note_database(away=False)

    async def _keep_on_failure(self, load: Callable[[], Awaitable[None]]) -> None:
        try:
            await load()
        except (DatabaseError, InterfaceError):
            self._note_database(away=True)
        else:
            self._note_database(away=False)

    def _note_database(self, *, away: bool) -> None:
        if away != self._database_away:
            self._database_away = away
            logger.log(
                logging.ERROR if away else logging.INFO,
                "database.%s snapshots=%d",
                "away" if away else "back",
                len(self._by_project),
            )
