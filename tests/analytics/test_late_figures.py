"""Figures that come later than the rows: each row counts once in every rollup, whoever makes them and however often."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from analytics.clickhouse import client, late_figures, migrator
from analytics.deletion.services import delete_session, finish_due
from analytics.errors import AnalyticsQueryError, AnalyticsUnavailableError
from analytics.shipper.columns import to_columns
from analytics.shipper.loop import Shipper, insert_into_store
from analytics.spool.frames import encode_meta
from analytics.spool.reader import Frame
from analytics.spool.writer import SpoolWriter
from core.models import Project
from tests.analytics.reconciling import differences_of, entries_of
from tests.analytics.request_counts import count_requests
from tests.analytics.test_migrations import failing_after
from tests.factories.analytics import make_entry
from tests.night import examples

ROWS = 200


def ship(spool: Path, project: UUID, number: int = ROWS) -> None:
    """Stores rows and makes none of their figures."""
    writer = SpoolWriter(spool)
    for entry in entries_of(project, number, spread_days=3):
        writer.append(entry)
    writer.close()
    shipper = Shipper(spool, insert=insert_into_store)
    shipper.drain()
    shipper.close()


class DyingStore:
    """Dies at a chance moment of the making of figures, before or after a statement has run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
        self._chance = random.Random(seed)
        for name in ("execute", "insert"):
            run = getattr(client, name)
            monkeypatch.setattr(client, name, self._dying(run))

    def _dying(self, run: object) -> object:
        def statement(*arguments: object, **options: object) -> object:
            when = self._chance.random()
            if when < 0.2:
                raise AnalyticsUnavailableError("away before")
            answer = run(*arguments, **options)  # type: ignore[operator]  # a function of the client
            if when > 0.8:
                raise AnalyticsUnavailableError("away after")
            return answer

        return statement


def ship_as_the_former_release(spool: Path, project: UUID, number: int) -> None:
    writer = SpoolWriter(spool)
    for entry in entries_of(project, number, spread_days=3):
        writer.append(entry)
    writer.close()
    shipper = Shipper(spool, insert=lambda columns, token: client.insert_columns("ingest", columns, token=token))
    shipper.drain()
    shipper.close()


def late_rows(project: UUID) -> set[int]:
    counts = count_requests(project)
    return {counts.minute, counts.hourly, counts.daily, counts.users}


def test_rows__shipped__have_their_late_figures_once_these_are_made(clickhouse: None, spool: Path) -> None:
    project = uuid4()
    ship(spool, project)
    counts = count_requests(project)
    assert (counts.requests, counts.sessions) == (ROWS, counts.in_session)
    assert late_rows(project) == {0}

    late_figures.settle()

    assert late_rows(project) == {ROWS}
    assert differences_of(project) == []


def test_shipper__drained__has_made_all_figures(clickhouse: None, spool: Path) -> None:
    project = uuid4()
    writer = SpoolWriter(spool)
    writer.append(make_entry(project_id=str(project)))
    writer.close()

    shipper = Shipper(spool)
    shipper.drain()
    shipper.close()

    assert count_requests(project).consistent


def test_rows__of_a_former_shipper__have_all_figures_at_once(clickhouse: None, spool: Path) -> None:
    project = uuid4()
    ship_as_the_former_release(spool, project, 20)
    assert count_requests(project).consistent

    late_figures.settle()

    assert count_requests(project).consistent


def test_migrate__broken_off_after_any_statement__takes_no_row_meanwhile_and_ends_equal(
    empty_store: None, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = uuid4()
    schema, migration, *_ = migrations = migrator.load_migrations()
    with monkeypatch.context() as patched:
        patched.setattr(migrator, "load_migrations", lambda: [schema])
        migrator.migrate()
    ship_as_the_former_release(spool, project, 40)
    refused = 0

    for allowed in range(0, len(list(migration.statements())), examples(7, 1)):
        with monkeypatch.context() as patched:
            patched.setattr(client, "execute", failing_after(allowed))
            patched.setattr(migrator, "load_migrations", lambda: migrations[:2])
            with pytest.raises(AnalyticsQueryError, match="broken off"):
                migrator.migrate()
        before = count_requests(project)
        try:
            client.insert_columns("ingest", to_columns(frames_of(project)), token=uuid4().hex)
        except AnalyticsUnavailableError:
            refused += 1
            assert count_requests(project) == before
        assert count_requests(project).consistent
    migrator.migrate()

    assert refused
    ship(spool, project, 10)
    assert differences_of(project) == []


def frames_of(project: UUID) -> list[Frame]:
    return [Frame(0, 0, encode_meta(one.record), b"{}", b"{}") for one in entries_of(project, 3, spread_days=3)]


@pytest.mark.parametrize("seed", range(examples(2, 5)))
def test_figures__store_dies_again_and_again__each_row_counts_once(
    clickhouse: None, spool: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    project = uuid4()
    monkeypatch.setattr(late_figures, "ROWS_AT_ONCE", 30)
    deaths = 0
    for _ in range(3):
        ship(spool, project)
        with monkeypatch.context() as patched:
            DyingStore(patched, seed)
            for _ in range(8):
                try:
                    late_figures.advance()
                except AnalyticsUnavailableError:
                    deaths += 1
    late_figures.settle()

    assert deaths
    assert late_rows(project) == {3 * ROWS}
    assert differences_of(project) == []


def test_figures__made_by_several_processes_at_once__each_row_counts_once(
    clickhouse: None, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = uuid4()
    monkeypatch.setattr(late_figures, "ROWS_AT_ONCE", 50)
    ship(spool, project)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: late_figures.settle(), range(8)))

    assert late_rows(project) == {ROWS}
    assert differences_of(project) == []


def test_window__made_again_after_rows_came__counts_its_own_rows_alone(clickhouse: None, spool: Path) -> None:
    project = uuid4()
    ship(spool, project)
    late_figures.settle()
    window = late_figures._last("")
    ship(spool, project)

    late_figures._make(window, "")

    assert late_rows(project) == {ROWS}
    late_figures.settle()
    assert late_rows(project) == {2 * ROWS}


def test_session__deleted_before_its_figures_are_made__leaves_figures_equal_to_the_rows(
    clickhouse: None, spool: Path, project: Project
) -> None:
    writer = SpoolWriter(spool)
    for _ in range(3):
        writer.append(make_entry(b"{}", b"{}", project_id=str(project.pk), session_id="gone", user_id="ann"))
    writer.close()
    shipper = Shipper(spool, insert=insert_into_store)
    shipper.drain()
    shipper.close()

    delete_session(project.pk, "gone", actor="someone")
    finish_due()

    counts = count_requests(project.pk)
    assert (counts.requests, counts.daily, counts.hourly, counts.users, counts.sessions) == (3, 3, 3, 3, 0)
    assert differences_of(project.pk) == []
