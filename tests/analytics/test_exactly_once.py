"""With the real engine, whatever process is killed, rows, records and counts of the rollups are equal."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from pytest_django import Settings

from analytics.clickhouse import client, late_figures
from analytics.clickhouse.migrator import load_migrations, migrate
from analytics.spool.shipper_state import StateFile
from analytics.spool.writer import SpoolWriter
from analytics.totals.file import read_totals
from tests.analytics.place import ShippingPlace, place_in
from tests.analytics.request_counts import Counts, count_requests
from tests.factories.analytics import make_entry
from tests.night import examples
from tests.services import START_SECONDS
from tests.waiting import TIMEOUT_SECONDS, wait_until

KILLS = examples(2, 4)
# So often each process is killed within a large batch.
ROUNDS = examples(1, 2)
RECORDS_BETWEEN_KILLS = 400
LONG_REQUEST = b'{"messages": [{"role": "user", "content": "' + b"Where is my parcel? " * 150 + b'"}]}'


@pytest.fixture
def place(tmp_path: Path, settings: Settings, stores: None) -> Iterator[ShippingPlace]:
    with place_in(tmp_path, settings, ShippingPlace) as found:
        migrate()
        yield found


def test_records__engine_and_shipper_killed_again_and_again__each_counted_exactly_once(place: ShippingPlace) -> None:
    chance, project = random.Random(), uuid4()
    writer = SpoolWriter(place.directory / "spool", segment_bytes=200_000)
    written = 0

    def write(number: int) -> None:
        nonlocal written
        for _ in range(number):
            session = chance.choice(["", "s1", "s2", "s3"])
            writer.append(make_entry(b"{}", b"{}", project_id=str(project), session_id=session, user_id="u"))
        written += number

    for kill in [place.kill_shipper, place.kill_engine] * KILLS:
        # The kill comes while these are shipped: some are stored by then, some are not.
        target = written + chance.randrange(1, RECORDS_BETWEEN_KILLS)
        for _ in range(20):
            write(RECORDS_BETWEEN_KILLS // 20)
        # A shipper may still have to start.
        wait_until(lambda: stored(project).requests >= target, seconds=START_SECONDS)  # noqa: B023 - called at once
        write(50)
        kill()
    writer.close()

    wait_until(lambda: stored(project).requests >= written, seconds=START_SECONDS)
    counts = stored(project)
    assert counts.requests == written
    assert counts.consistent, counts
    wait_until(lambda: not list((place.directory / "spool").glob("*.seg")))
    totals = read_totals(place.directory / "spool")
    assert totals is not None
    assert totals.records == written
    assert [(one.project, one.outcomes) for one in totals.usage] == [(str(project), {"success": written})]


def test_records__killed_within_large_batches__each_counted_exactly_once(place: ShippingPlace) -> None:
    project, spool = uuid4(), place.directory / "spool"
    entries = [
        make_entry(LONG_REQUEST, b"{}", project_id=str(project), session_id=f"s{n % 50}") for n in range(3000 * ROUNDS)
    ]
    kills = [place.kill_engine, place.kill_shipper]
    writer = SpoolWriter(spool)
    for number, kill in enumerate(kills * ROUNDS):
        for entry in entries[1500 * number : 1500 * (number + 1)]:
            writer.append(entry)
        # A plan is saved before its insert begins, and removed once it ended.
        wait_until(lambda: any(plan.size > 1 << 20 for plan in StateFile(spool).load().plans), seconds=START_SECONDS)
        kill()
    writer.close()

    wait_until(lambda: not list(spool.glob("*.seg")), seconds=START_SECONDS)
    counts = stored(project)
    assert counts.requests == len(entries)
    assert counts.consistent, counts
    totals = read_totals(spool)
    assert totals is not None
    assert totals.records == len(entries)


def test_ship_records__sigterm_and_drain__end_in_order(place: ShippingPlace) -> None:
    project = uuid4()
    writer = SpoolWriter(place.directory / "spool")
    writer.append(make_entry(project_id=str(project)))
    wait_until(lambda: stored(project).requests == 1, seconds=START_SECONDS)

    second = place.start_shipper("--once")
    assert second.wait(START_SECONDS) == 1
    assert b"Another shipper" in (place.directory / "shipper.log").read_bytes()
    place.shipper.terminate()
    assert place.shipper.wait(TIMEOUT_SECONDS) == 0

    for _ in range(3):
        writer.append(make_entry(project_id=str(project)))
    assert place.start_shipper("--drain").wait(START_SECONDS) == 0
    writer.close()
    assert stored(project).requests == 4
    assert stored(project).consistent


def test_migrate__lost_ledger__runs_again_and_changes_nothing(place: ShippingPlace) -> None:
    assert migrate() == []
    before = tables()
    client.execute("DROP TABLE schema_migrations SYNC")

    applied = migrate()

    assert applied == [migration.name for migration in load_migrations()]
    assert tables() == before


def tables() -> list[tuple[Any, ...]]:
    """Returns all tables but the migrators' lease, whose number grows with each migrator."""
    return client.execute(
        "SELECT name, create_table_query FROM system.tables"
        " WHERE database = 'llm' AND NOT startsWith(name, 'migration_lease_') ORDER BY name"
    )


def stored(project: UUID) -> Counts:
    """The shipper makes late figures at the same time."""
    late_figures.settle()
    return count_requests(project)
