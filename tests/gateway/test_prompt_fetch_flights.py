"""The reads of a worker whose applications fetch prompts: one for many fetches at once, and another when it may have
forgotten the project."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest
from django.db import OperationalError

from core.keys.services import KeyRecord
from gateway.project_settings.settings import ProjectSettings
from gateway.prompt_fetch.answer import prompt_answer
from gateway.prompt_fetch.query import PromptQuery
from gateway.snapshot import loader
from gateway.snapshot.project import PriceTable, ProjectSnapshot
from gateway.snapshot.prompts import ManagedPrompt
from gateway.snapshot.store import SnapshotStore
from prompts.selectors import PromptVersionRecord
from tests.gateway.prompted import KEY, PROJECT, a_version

CONFIG = "01890000-0000-7000-8000-0000000000c1"
FETCHES = 1000


class Reads:
    """A database whose reads are counted."""

    def __init__(self) -> None:
        self.keys = self.projects = self.versions = 0

    def project_of_key(self, key_hash: str) -> UUID:
        self.keys += 1
        return PROJECT

    def load_project(self, project_id: UUID, prices: PriceTable, serial: int) -> ProjectSnapshot:
        self.projects += 1
        keys: dict[str, KeyRecord] = {"hash": KEY}
        prompt = ManagedPrompt(CONFIG, "support", a_version("Be kind."), last_version=2000)
        settings = ProjectSettings()
        return ProjectSnapshot(project_id, str(project_id), keys, {}, prices, settings, serial, {"support": prompt})

    def prompt_version(self, config_id: UUID, number: int) -> PromptVersionRecord:
        assert str(config_id) == CONFIG
        self.versions += 1
        return a_version(f"Text {number}.")


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    made = Reads()
    monkeypatch.setattr(loader, "project_of_key", made.project_of_key)
    monkeypatch.setattr(loader, "load_project", made.load_project)
    monkeypatch.setattr(loader, "load_prices", dict)
    monkeypatch.setattr(loader, "prompt_version", made.prompt_version)
    return made


def away() -> tuple[object, ...]:
    raise OperationalError


async def fetched(store: SnapshotStore, version: int) -> bytes:
    found = await store.resolve("hash")
    assert found is not None
    return (await prompt_answer(store, found[0], PromptQuery("support", version=version), "r-1")).body


@pytest.mark.parametrize("version", [0, 7])
async def test_cold_fetches__a_thousand_at_once__cost_one_read(reads: Reads, version: int) -> None:
    store = SnapshotStore()

    answers = await asyncio.gather(*(fetched(store, version) for _ in range(FETCHES)))

    assert len(set(answers)) == 1
    assert (reads.keys, reads.projects, reads.versions) == (1, 1, 1 if version else 0)


async def test_versions__of_more_numbers_than_are_kept__are_answered_and_bounded(reads: Reads) -> None:
    store = SnapshotStore()
    for version in range(1, 1101):
        assert b"Text" in await fetched(store, version) or version == 3
    read = reads.versions

    await fetched(store, 1100)
    assert reads.versions == read
    await fetched(store, 1)
    assert reads.versions == read + 1


async def test_version__beyond_the_last__is_not_looked_up(reads: Reads) -> None:
    store = SnapshotStore()
    found = await store.resolve("hash")
    assert found is not None
    prompt = found[0].prompts["support"]

    assert await store.prompt_version(prompt, 2001) is None
    assert reads.versions == 0


async def test_idle_project__database_away__is_kept_until_it_is_back(
    reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SnapshotStore()
    await fetched(store, 0)
    monkeypatch.setattr("gateway.snapshot.store._IDLE_SECONDS", -1.0)

    monkeypatch.setattr(loader, "prices_mark", away)
    await store.refresh_all()
    assert store.find("hash") is not None

    monkeypatch.setattr(loader, "prices_mark", lambda: ("mark",))
    await store.refresh_all()
    assert store.find("hash") is None
