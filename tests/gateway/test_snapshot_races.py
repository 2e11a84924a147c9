"""A change that is announced while its project is being read: the worker must not keep what it read before."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from uuid import UUID, uuid4

import psycopg
import pytest
from django.db import OperationalError

from core.errors import ServiceUnavailableError
from core.keys.services import KeyRecord
from gateway.project_settings.settings import ProjectSettings
from gateway.snapshot import loader
from gateway.snapshot.project import PriceTable, ProjectSnapshot
from gateway.snapshot.store import SnapshotStore
from integrations.pricing.cost import FREE
from integrations.providers.base import Credentials
from tests.waiting import TIMEOUT_SECONDS

PROJECT = uuid4()
KEY = KeyRecord(id=1, project_id=PROJECT, key_hash="hash", scopes=frozenset({"gateway"}), expires_at=None)


class Database:
    """A database of one project; `keys` are its present ones. A read named by `pause` is held after it has read, until
    `resume`."""

    def __init__(self) -> None:
        self.keys: dict[str, KeyRecord] = {"hash": KEY}
        self.prices: PriceTable = {}
        self.price_reads = 0
        self.mark = 1
        self.has_read = threading.Event()
        self.resume = threading.Event()
        self.resume.set()
        self.paused = ""

    def load_project(self, project_id: UUID, prices: PriceTable, serial: int) -> ProjectSnapshot:
        found = ProjectSnapshot(project_id, str(project_id), dict(self.keys), {}, prices, ProjectSettings(), serial)
        self._linger("load_project")
        return found

    def load_prices(self) -> PriceTable:
        found = self.prices
        self.price_reads += 1
        self._linger("load_prices")
        return found

    def prices_mark(self) -> tuple[object, ...]:
        return (self.mark,)

    def project_of_key(self, key_hash: str) -> UUID | None:
        found = PROJECT if key_hash in self.keys else None
        self._linger("project_of_key")
        return found

    def pause(self, read: str) -> None:
        self.paused = read
        self.has_read.clear()
        self.resume.clear()

    def _linger(self, read: str) -> None:
        if read == self.paused:
            self.has_read.set()
            self.resume.wait(TIMEOUT_SECONDS)


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> Database:
    made = Database()
    monkeypatch.setattr(loader, "load_project", made.load_project)
    monkeypatch.setattr(loader, "project_of_key", made.project_of_key)
    monkeypatch.setattr(loader, "load_prices", made.load_prices)
    monkeypatch.setattr(loader, "prices_mark", made.prices_mark)
    return made


async def while_reading(database: Database, store: SnapshotStore, read: str, change: Callable[[], object]) -> None:
    """Resolves the key, and makes and announces `change` between the read and its arrival."""
    database.pause(read)
    resolving = asyncio.ensure_future(store.resolve("hash"))
    assert await asyncio.to_thread(database.has_read.wait, TIMEOUT_SECONDS)
    change()
    announced = asyncio.ensure_future(store.refresh_project(PROJECT))
    await asyncio.sleep(0)
    database.resume.set()
    await asyncio.gather(resolving, announced)


async def test_key__revoked_while_its_project_is_read__is_not_kept(database: Database) -> None:
    store = SnapshotStore()

    await while_reading(database, store, "load_project", database.keys.clear)

    assert store.find("hash") is None


async def test_change__announced_while_its_project_is_read_again_and_again__is_seen(database: Database) -> None:
    store = SnapshotStore()
    database.pause("load_project")
    resolving = asyncio.ensure_future(store.resolve("hash"))
    assert await asyncio.to_thread(database.has_read.wait, TIMEOUT_SECONDS)

    # There are more changes than repetitions of a load, each announced before the load has ended.
    announced = [asyncio.ensure_future(store.refresh_project(PROJECT)) for _ in range(20)]
    await asyncio.sleep(0)
    database.keys.clear()
    announced.append(asyncio.ensure_future(store.refresh_project(PROJECT)))
    await asyncio.sleep(0)
    database.resume.set()
    await asyncio.gather(resolving, *announced)

    assert store.find("hash") is None


async def test_prices__changed_while_they_are_read_for_the_first_time__are_the_new_ones(database: Database) -> None:
    store = SnapshotStore()
    database.pause("load_prices")
    first = asyncio.ensure_future(store.project(PROJECT))
    assert await asyncio.to_thread(database.has_read.wait, TIMEOUT_SECONDS)

    database.prices = {("openai", "gpt-new"): FREE}
    announced = asyncio.ensure_future(store.refresh_prices())
    await asyncio.sleep(0)
    database.resume.set()
    await asyncio.gather(first, announced)

    assert (await store.project(PROJECT)).prices == database.prices


async def test_prices__re_read_regularly__only_after_a_change_and_projects_in_any_case(database: Database) -> None:
    store = SnapshotStore()
    await store.resolve("hash")
    await store.refresh_all()
    reads, before = database.price_reads, await store.project(PROJECT)

    await store.refresh_all()
    assert database.price_reads == reads
    assert (await store.project(PROJECT)).serial > before.serial

    database.prices, database.mark = {("openai", "gpt-new"): FREE}, 2
    await store.refresh_all()
    assert (await store.project(PROJECT)).prices == database.prices


async def test_prices__changed_while_they_are_re_read__are_read_again_the_next_time(database: Database) -> None:
    store = SnapshotStore()
    await store.resolve("hash")
    database.pause("load_prices")
    refreshing = asyncio.ensure_future(store.refresh_all())
    assert await asyncio.to_thread(database.has_read.wait, TIMEOUT_SECONDS)
    database.prices, database.mark = {("openai", "gpt-new"): FREE}, 2
    database.resume.set()
    await refreshing

    await store.refresh_all()
    assert (await store.project(PROJECT)).prices == database.prices


async def test_key__made_while_it_is_looked_for__is_found_by_the_next_request(database: Database) -> None:
    database.keys.clear()
    store = SnapshotStore()

    await while_reading(database, store, "project_of_key", lambda: database.keys.update({"hash": KEY}))

    assert await store.resolve("hash") is not None


async def test_project__unreadable_row__its_last_snapshot_serves_and_others_are_re_read(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = SnapshotStore()
    other = uuid4()
    assert await store.resolve("hash") is not None
    before = await store.project(other)

    def load_project(project_id: UUID, prices: PriceTable, serial: int) -> ProjectSnapshot:
        if project_id == PROJECT:
            raise ValueError("an odd row")
        return database.load_project(project_id, prices, serial)

    monkeypatch.setattr(loader, "load_project", load_project)
    await store.refresh_project(PROJECT)
    await store.refresh_prices()

    assert store.find("hash") is not None
    assert (await store.project(other)).serial > before.serial
    assert f"project.unreadable project_id={PROJECT}" in caplog.text


async def test_prices__unreadable__last_ones_serve_and_a_revoked_key_is_dropped(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The driver's own errors are none of Django's, such as what it raises when a cursor is closed by a pooler."""
    store = SnapshotStore()
    assert await store.resolve("hash") is not None
    await store.refresh_all()
    database.mark, readable = 2, database.load_prices

    def load_prices() -> PriceTable:
        raise psycopg.errors.InvalidCursorName

    monkeypatch.setattr(loader, "load_prices", load_prices)
    database.keys.clear()
    await store.refresh_all()

    assert store.find("hash") is None
    assert "prices.unreadable" in caplog.text
    monkeypatch.setattr(loader, "load_prices", readable)
    database.prices = {("openai", "gpt-new"): FREE}
    await store.refresh_all()
    assert (await store.project(PROJECT)).prices == database.prices


async def test_keys__many_that_are_unknown_at_once__hold_up_no_project_and_are_refused_in_the_end(
    database: Database,
) -> None:
    store = SnapshotStore()
    await store.resolve("hash")
    database.pause("project_of_key")
    tried = [asyncio.ensure_future(store.resolve(f"tried {number}")) for number in range(300)]
    assert await asyncio.to_thread(database.has_read.wait, TIMEOUT_SECONDS)

    assert await store.resolve("hash") is not None
    await asyncio.wait_for(store.refresh_project(PROJECT), TIMEOUT_SECONDS)
    database.resume.set()
    found = await asyncio.gather(*tried, return_exceptions=True)

    refused = [error for error in found if isinstance(error, ServiceUnavailableError)]
    assert found.count(None) == 200
    assert [error.headers["retry-after"] for error in refused] == ["1"] * 100


async def test_key_of_the_machines_role__changes_while_the_database_is_away__requests_have_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Credentials(1, "google_vertex", "", "first", {"credentials": "ambient"})
    store = SnapshotStore()
    monkeypatch.setattr(
        loader, "load_project", lambda *given: replace(database.load_project(*given), credentials=of(held))
    )
    await store.resolve("hash")
    before = (store.find("hash") or pytest.fail())[0]
    before.plans["of the first key"] = object()
    monkeypatch.setattr(loader, "prices_mark", _away)
    monkeypatch.setattr(loader, "resolved", lambda credentials: replace(credentials, secret="second"))

    await store.refresh_all()
    await store.renew_credentials()

    renewed, key = store.find("hash") or pytest.fail()
    assert (renewed.credentials["google_vertex"].secret, renewed.plans, key) == ("second", {}, KEY)
    await store.renew_credentials()
    assert (store.find("hash") or pytest.fail())[0] is renewed


def of(credentials: Credentials) -> dict[str, Credentials]:
    return {credentials.provider: credentials}


def _away() -> tuple[object, ...]:
    raise OperationalError("away")
