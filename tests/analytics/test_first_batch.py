"""The engine is killed while, or right after, tables get their first batch or late figures: every table has each record
once.

FIRST_BATCH_KILLS is the number of kills for each kind of store: by default 2, and by day 1 of an upgraded one. The
promise is twenty, whose figures are logged by
`FIRST_BATCH_KILLS=20 pytest tests/analytics/test_first_batch.py --log-cli-level=INFO`.
"""

from __future__ import annotations

import logging
import os
import random
import shutil
import signal
import threading
from contextlib import suppress
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from pytest_django import Settings

from analytics.clickhouse import client, late_figures, migrator
from analytics.clickhouse.rollups import list_rollups
from analytics.errors import AnalyticsUnavailableError
from analytics.request_log.columns import Columns
from analytics.shipper.loop import Shipper, insert_into_store
from analytics.spool.writer import SpoolWriter
from tests.analytics import upgrades
from tests.analytics.place import Place, place_in
from tests.analytics.reconciling import differences_of, entries_of
from tests.night import examples

logger = logging.getLogger(__name__)

KILLS = int(os.environ.get("FIRST_BATCH_KILLS", "2"))
UPGRADED_KILLS = int(os.environ.get("FIRST_BATCH_KILLS", examples(1, 2)))
RECORDS = 400
LATE = ("requests_minute", "users_daily", "spend_hourly", "requests_daily", "request_kinds", "guardrails_hourly")

pytestmark = pytest.mark.timeout(60 + 60 * KILLS)


def write(place: Place, project: UUID, number: int) -> None:
    writer = SpoolWriter(place.directory / "spool")
    for entry in entries_of(project, number, spread_days=3):
        writer.append(entry)
    writer.close()


def upgrade(place: Place, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Makes a store, starts its engine again, and applies the migrations of tests: they make a table, copy a table and
    change a view."""
    migrator.migrate()
    place.kill_engine()
    monkeypatch.setattr(migrator, "MIGRATIONS", upgrades.copy_to(folder))
    migrator.migrate()


class KillingStore:
    """Takes a batch, and kills the engine as soon as `table` has rows of it, or else once it is stored: the shipper
    does not learn whether it was."""

    def __init__(self, place: Place, table: str, project: UUID) -> None:
        self.tries = 0
        self._place = place
        self._table = table
        self._project = project

    def insert(self, columns: Columns, token: str) -> None:
        self.tries += 1
        if self.tries > 1:
            insert_into_store(columns, token)
            return
        stored = threading.Event()
        killer = threading.Thread(target=self._kill_when_rows_come, args=(stored,))
        killer.start()
        try:
            insert_into_store(columns, token)
        except AnalyticsUnavailableError:
            logger.info("killed within the insert")
        stored.set()
        killer.join()
        self._place.kill_engine()
        raise AnalyticsUnavailableError("killed")

    def _kill_when_rows_come(self, stored: threading.Event) -> None:
        while not stored.is_set():
            if rows_of(self._table, self._project):
                self._place.engine.process.kill()
                return


def kill_while_figures_are_made(place: Place, project: UUID, number: int) -> None:
    """Kills the engine as soon as a late rollup has rows of the batch, or else at a chance moment of its figures; then
    any process makes them again."""
    table, ended = random.Random(number).choice(LATE), threading.Event()

    def kill_when_rows_come() -> None:
        while not (ended.is_set() or rows_of(table, project)):
            pass
        place.engine.process.kill()

    killer = threading.Thread(target=kill_when_rows_come)
    killer.start()
    with suppress(AnalyticsUnavailableError):
        late_figures.settle()
    ended.set()
    killer.join()
    place.kill_engine()
    late_figures.settle()
    late_figures.settle()


def rows_of(table: str, project: UUID) -> int:
    sql = f"SELECT count() FROM {table} WHERE project_id = {{project:UUID}}"  # noqa: S608 - a table of the schema
    ((rows,),) = client.execute(sql, {"project": project})
    return int(rows)


@pytest.mark.parametrize("upgraded", [False, True], ids=["new", "upgraded"])
def test_first_batch__engine_killed_as_a_table_gets_it__every_table_has_each_record_once(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch, stores: None, upgraded: bool
) -> None:
    for number in range(UPGRADED_KILLS if upgraded else KILLS):
        directory, project = tmp_path / f"place-{number}", uuid4()
        with monkeypatch.context() as patched, place_in(directory, settings, Place) as place:
            if upgraded:
                upgrade(place, patched, directory / "migrations")
            else:
                migrator.migrate()
            write(place, project, RECORDS)
            # The requests get the batch before some figures and after others.
            table = "requests" if number % 2 == upgraded else random.choice(list_rollups()).table
            store = KillingStore(place, table, project)
            shipper = Shipper(directory / "spool", insert=store.insert)

            shipper.drain()

            shipper.close()
            logger.info("kill=%d table=%s rows=%d tries=%d", number, table, rows_of("requests", project), store.tries)
            kill_while_figures_are_made(place, project, number)
            assert store.tries >= 2
            assert rows_of("requests", project) == RECORDS
            assert differences_of(project) == []


class UnnamingStore:
    """Takes the second batch, and leaves what a kill leaves in the microseconds between the token of a part and its
    name: the tokens of all tables, and none of the parts."""

    def __init__(self, place: Place) -> None:
        self.tokens: list[str] = []
        self._place = place

    def insert(self, columns: Columns, token: str) -> None:
        is_new, self.tokens = token not in self.tokens, [*self.tokens, token]
        insert_into_store(columns, token)
        if is_new and len(self.tokens) == 2:
            directory = self._place.engine.directory
            self._place.engine.stop(signal.SIGKILL)
            for table in directory.glob("store/*/*/deduplication_logs"):
                last = (table / "deduplication_log_1.txt").read_text().splitlines()[-1:]
                for part in (line.split("\t")[1] for line in last):
                    shutil.rmtree(table.parent / part)
            self._place.kill_engine()
            raise AnalyticsUnavailableError("killed")


def test_batch__engine_killed_before_its_parts_have_their_names__is_stored_when_sent_again(
    tmp_path: Path, settings: Settings, stores: None
) -> None:
    project = uuid4()
    with place_in(tmp_path / "place", settings, Place) as place:
        migrator.migrate()
        store = UnnamingStore(place)
        for _ in range(2):
            write(place, project, 20)
            shipper = Shipper(place.directory / "spool", insert=store.insert)
            shipper.drain()
            shipper.close()
        first, again = store.tokens[0], store.tokens[-1]

        assert store.tokens == [first, again, again]
        assert (rows_of("requests", project), differences_of(project)) == (40, [])
        assert rows_of("payloads", project) == 40
