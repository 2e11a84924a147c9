from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from typing import Any
from uuid import UUID, uuid4

import pytest
from pytest_django import Settings

from analytics.errors import AnalyticsQueryError, AnalyticsUnavailableError
from analytics.telemetry import storage
from analytics.telemetry.errors import TelemetryBusyError
from analytics.telemetry.storage import Gatherer
from tests.waiting import TIMEOUT_SECONDS, wait_until

PROJECT = uuid4()


class FakeTable:
    """A table that holds each insert until `going` is set; it refuses rows with `poison`, and fails on demand."""

    def __init__(self) -> None:
        self.inserts: list[list[Any]] = []
        self.tokens: list[str] = []
        self.failure: Exception | None = None
        self.going = threading.Event()
        self.going.set()
        self.entered = threading.Semaphore(0)

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]], token: str) -> None:
        self.entered.release()
        assert self.going.wait(TIMEOUT_SECONDS)
        if self.failure is not None:
            raise self.failure
        if any("poison" in row for row in rows):
            raise AnalyticsQueryError("refused", server_code=53, reason="TYPE_MISMATCH")
        self.inserts.append([row[-1] for row in rows])
        self.tokens.append(token)


@pytest.fixture
def table() -> FakeTable:
    return FakeTable()


@pytest.fixture
def gatherer(table: FakeTable) -> Gatherer:
    return Gatherer("t", ("x",), insert=table.insert)


def store(gatherer: Gatherer, *values: str, project: UUID = PROJECT) -> None:
    gatherer.store(project, [(value,) for value in values], body=repr(values).encode(), size=9)


def posted_while_busy(gatherer: Gatherer, table: FakeTable, *posts: str) -> list[Future[None]]:
    """Starts a first post whose insert hangs and others that wait behind it, and then lets all continue."""
    table.going.clear()
    pool = ThreadPoolExecutor(len(posts) + 1)
    futures = [pool.submit(store, gatherer, "first")]
    assert table.entered.acquire(timeout=TIMEOUT_SECONDS)
    for number, post in enumerate(posts, start=1):
        futures.append(pool.submit(store, gatherer, post))
        _until_waiting(gatherer, number)
    table.going.set()
    pool.shutdown(wait=True)
    return futures


def _until_waiting(gatherer: Gatherer, number: int) -> None:
    wait_until(lambda: len(gatherer._waiting) == number)


def test_posts__while_an_insert_runs__become_one_insert(gatherer: Gatherer, table: FakeTable) -> None:
    futures = posted_while_busy(gatherer, table, "a", "b", "c")

    assert all(future.exception() is None for future in futures)
    assert table.inserts == [["first"], ["a", "b", "c"]]


def test_posts__one_after_the_other__each_stored_when_answered(gatherer: Gatherer, table: FakeTable) -> None:
    for number in range(3):
        store(gatherer, str(number))
        assert table.inserts[-1] == [str(number)]


def test_posts__within_the_window__wait_for_its_end(gatherer: Gatherer, table: FakeTable, settings: Settings) -> None:
    settings.OTLP_WINDOW_SECONDS = 0.2
    store(gatherer, "first")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: store(gatherer, str(number)), range(8)))

    assert len(table.inserts) < 9
    assert sorted(chain(*table.inserts)) == sorted(["first", *map(str, range(8))])


def test_posts__many_threads__every_row_once(gatherer: Gatherer, table: FakeTable) -> None:
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda number: store(gatherer, str(number)), range(500)))

    assert sorted(chain(*table.inserts), key=int) == [str(number) for number in range(500)]
    assert len(set(table.tokens)) == len(table.tokens)


def test_post__refused_by_the_store__others_of_its_insert_are_stored(gatherer: Gatherer, table: FakeTable) -> None:
    _, a, poison, b = posted_while_busy(gatherer, table, "a", "poison", "b")

    assert (a.exception(), b.exception()) == (None, None)
    assert isinstance(poison.exception(), AnalyticsQueryError)
    assert table.inserts == [["first"], ["a"], ["b"]]


def test_store__away__all_that_wait_fail_and_the_next_is_tried(gatherer: Gatherer, table: FakeTable) -> None:
    table.failure = AnalyticsUnavailableError("away")
    futures = posted_while_busy(gatherer, table, "a", "b")
    assert all(isinstance(future.exception(), AnalyticsUnavailableError) for future in futures)

    table.failure = None
    store(gatherer, "later")
    assert table.inserts == [["later"]]


def test_store__fails_in_an_unknown_way__no_post_is_reported_as_stored(gatherer: Gatherer, table: FakeTable) -> None:
    table.failure = RuntimeError("defect")

    first, waiting = posted_while_busy(gatherer, table, "a")

    assert isinstance(first.exception(), RuntimeError)
    assert waiting.exception() is not None
    table.failure = None
    store(gatherer, "later")


@pytest.mark.parametrize("limit", ["MAX_WAITING_BYTES", "MAX_WAITING_POSTS"])
def test_posts__more_than_may_wait__refused_at_once(
    gatherer: Gatherer, table: FakeTable, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(storage, limit, 1)
    table.going.clear()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(store, gatherer, "first")
        assert table.entered.acquire(timeout=TIMEOUT_SECONDS)
        waiting = pool.submit(store, gatherer, "waiting")
        _until_waiting(gatherer, 1)
        with pytest.raises(TelemetryBusyError):
            store(gatherer, "too much")
        table.going.set()
    assert (first.exception(), waiting.exception()) == (None, None)


def test_post__nothing_in_it__no_insert(gatherer: Gatherer, table: FakeTable) -> None:
    gatherer.store(PROJECT, [], body=b"", size=0)

    assert table.inserts == []
