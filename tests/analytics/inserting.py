"""Hosts, inserters and a Redis that die at chance moments, one step after the other."""

from __future__ import annotations

import random
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import redis

from analytics.clickhouse import client
from analytics.errors import AnalyticsQueryError, AnalyticsUnavailableError
from analytics.shipper.inserting import exchange, handing_over, inserter
from analytics.shipper.inserting.handing_over import HandingOver
from analytics.shipper.inserting.inserter import Inserter
from analytics.shipper.loop import Shipper
from analytics.spool import names
from analytics.spool.writer import SpoolWriter
from tests.factories.analytics import make_entry
from tests.services import Service

POISON = "poison"
# Of a wait of a host, which passes at once: in a few dozen of them nothing is settled by the time alone.
_SECONDS_OF_A_WAIT = 4.0


class Crash(BaseException):
    """An exception in the place of the death of the process."""


class Host:
    def __init__(self, world: World, spool: Path) -> None:
        self.spool, self._world = spool, world
        self._writer = SpoolWriter(spool, segment_bytes=4000)
        self.is_busy = False
        self.shipper = self._start()

    def write(self, project: UUID, user: str = "u", request: bytes = b"{}") -> str:
        entry = make_entry(request, b"{}", project_id=str(project), user_id=user, session_id="s")
        self._writer.append(entry)
        return entry.record.request_id

    def ship(self) -> None:
        self.is_busy = True
        try:
            self.shipper.ship_batch()
        except Crash:
            self.shipper.close()
            self.shipper = self._start()
        finally:
            self.is_busy = False

    def close(self) -> None:
        self._writer.close()

    def dead_letters(self) -> int:
        return len(list((self.spool / "dead").glob("*.reason")))

    def _start(self) -> Shipper:
        shipper = Shipper(self.spool, handing_over=HandingOver())
        shipper.stop = Turn(self._world)
        return shipper


class Turn(threading.Event):
    """Lets others work while a host waits."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def wait(self, timeout: float | None = None) -> bool:
        self._world.step()
        return self.is_set()


class World:
    """Processes die before and after what they ask of Redis and ClickHouse, and Redis with or without what it has."""

    def __init__(self, folder: Path, server: Service, monkeypatch: pytest.MonkeyPatch, *, seed: int) -> None:
        self.chance = random.Random(seed)
        self.deaths, self.until, self._server = 0, 0, server
        self._now = 0.0
        self.waits, self.inserted = 0, list[int]()
        self._due: list[Host] = []
        self._are_gone = False
        self._dump = folder / "redis" / "dump.rdb"
        self.hosts = [Host(self, folder / f"spool{number}") for number in range(4)]
        self._inserters = [Inserter(), Inserter()]
        self.project = UUID(int=self.chance.getrandbits(128))
        self.good: list[str] = []
        self.bad: list[str] = []
        monkeypatch.setattr(handing_over, "monotonic", lambda: self._now)
        # What a dead inserter leaves is taken at once.
        monkeypatch.setattr(exchange, "_LEASE_SECONDS", 0.0)
        monkeypatch.setattr(inserter, "_GATHER_SECONDS", 0.0)
        monkeypatch.setattr(exchange, "_run", self._dying(exchange._run, redis.ConnectionError()))
        insert = self._dying(self._noted(client.insert_columns), AnalyticsUnavailableError("away"))
        monkeypatch.setattr(client, "insert_columns", insert)

    def live(self, deaths: int) -> None:
        """Writes and ships until so many have died, and then until all is stored."""
        self.until = deaths
        while self.deaths < self.until:
            self.step()
        for host in self.hosts:
            host.close()
        while any(names.list_files(host.spool, names.SEGMENT) for host in self.hosts):
            self.ship()

    def ship(self) -> None:
        """Each host ships a batch, and all of them wait when an inserter looks."""
        self._due = list(self.hosts)
        while self._due:
            self._due.pop(0).ship()

    def begin(self) -> None:
        self._inserters[0].insert_group()

    def leave(self) -> None:
        """The inserters leave when a host waits."""
        self._are_gone = True

    def step(self) -> None:
        self.waits += 1
        self._now += _SECONDS_OF_A_WAIT
        if self.deaths >= self.until:
            act = self._due.pop(0).ship if self._due else self._insert
            act()
            return
        kind = self.chance.random()
        idle = [host for host in self.hosts if not host.is_busy]
        if idle and kind < 0.4:
            self._work(self.chance.choice(idle))
        elif kind < 0.45:
            self._restart_redis()
        else:
            self._insert()

    def _work(self, host: Host) -> None:
        for _ in range(self.chance.randrange(4)):
            is_bad = self.chance.random() < 0.02
            (self.bad if is_bad else self.good).append(host.write(self.project, POISON if is_bad else "u"))
        host.ship()

    def _insert(self) -> None:
        number = self.chance.randrange(2)
        try:
            if self._are_gone:
                exchange.leave(self._inserters[0].name)
            else:
                self._inserters[number].insert_group()
        except Crash:
            self._inserters[number] = Inserter()

    def _restart_redis(self) -> None:
        """It comes back with nothing, or with what it had a few steps before."""
        self.deaths += 1
        self._server.stop(signal.SIGKILL)
        if self.chance.random() < 0.5:
            self._dump.unlink(missing_ok=True)
        self._server.start_again()
        self._server.wait_until(self._answers)

    def _answers(self) -> bool:
        try:
            return bool(exchange._redis().ping())
        except redis.RedisError:
            return False

    def _dying(self, run: Callable[..., Any], failure: Exception) -> Callable[..., Any]:
        def dying(*arguments: Any, **options: Any) -> Any:
            self._die(failure)
            found = run(*arguments, **options)
            self._die(failure)
            return found

        return dying

    def _die(self, failure: Exception) -> None:
        if self.deaths >= self.until:
            return
        kind = self.chance.random()
        if kind < 0.02:
            exchange._redis().save()
        elif kind < 0.05:
            self.deaths += 1
            raise Crash
        elif kind < 0.08:
            raise failure

    def _noted(self, insert: Callable[..., None]) -> Callable[..., None]:
        def noted(table: str, columns: Any, *, token: str) -> None:
            if POISON in columns.get("user_id", ()):
                raise AnalyticsQueryError("refused", server_code=53, reason="TYPE_MISMATCH")
            insert(table, columns, token=token)
            if table == "ingest":
                self.inserted.append(len(columns["request_id"]))

        return noted
