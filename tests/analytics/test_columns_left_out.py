"""Columns in which a batch has nothing but defaults are not sent, and the store has the same rows as with them."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from analytics.clickhouse import client
from analytics.request_log.columns import DEFAULTS, INGESTED, Columns
from analytics.request_log.record import RequestRecord
from analytics.shipper.loop import Shipper, insert_into_store
from analytics.spool.writer import SpoolWriter
from tests.factories.analytics import make_entry, rows_of, store

_insert = client.insert_columns


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, Sequence[Any]]]:
    found: list[Mapping[str, Sequence[Any]]] = []

    def insert(table: str, columns: Mapping[str, Sequence[Any]], *, token: str) -> None:
        if table == "ingest":
            found.append(columns)
        _insert(table, columns, token=token)

    monkeypatch.setattr(client, "insert_columns", insert)
    return found


def _columns(spool: Path, *entries: Any) -> Columns:
    """Returns the columns of the entries as the shipper sends them."""
    writer = SpoolWriter(spool)
    for entry in entries:
        writer.append(entry)
    writer.close()
    sent: list[Columns] = []
    shipper = Shipper(spool, insert=lambda columns, token: sent.append(columns))
    try:
        shipper.drain()
    finally:
        shipper.close()
    [columns] = sent
    return columns


def test_defaults__of_columns_that_may_be_left_out__are_those_of_the_table(clickhouse: None) -> None:
    client.execute("DROP TABLE IF EXISTS ingest_kept SYNC")
    client.execute("CREATE TABLE ingest_kept AS ingest ENGINE = Memory")
    named: dict[str, Any] = {"project_id": uuid.uuid4(), "request_id": uuid.uuid4(), "ts": 1, "outcome": "success"}
    assert set(INGESTED) == named.keys() | DEFAULTS.keys()

    client.insert("ingest_kept", tuple(named), [tuple(named.values())], token="without")
    every = {**named, **DEFAULTS}
    client.insert("ingest_kept", tuple(every), [tuple(every.values())], token="with")

    without, with_them = client.execute("SELECT * FROM ingest_kept")
    client.execute("DROP TABLE ingest_kept SYNC")
    assert without == with_them


def test_batch__sent_without_defaults__stores_what_all_columns_store(clickhouse: None, tmp_path: Path) -> None:
    projects = uuid.uuid4(), uuid.uuid4()
    # A row past its retention would go with the next merge.
    ts = time.time_ns() // 1000
    first, second = (
        _columns(tmp_path, make_entry(project_id=str(project), session_id="s", ts=ts)) for project in projects
    )

    insert_into_store(first, "left out")
    client.insert("ingest", INGESTED, rows_of(second), token="all")

    columns = "* EXCEPT (project_id, request_id, recorded_at, figures_later)"
    stored = client.execute(f"SELECT {columns} FROM requests WHERE session_id = 's'")  # noqa: S608 - of this test
    assert stored[0] == stored[1]


def test_batch__one_row_with_a_value__sends_the_column(
    clickhouse: None, tmp_path: Path, sent: list[Mapping[str, Sequence[Any]]]
) -> None:
    project = uuid.uuid4()
    values: dict[str, Any] = {
        "user_id": "ann",
        "operation": "responses",
        "retry_count": 2,
        "fallback_used": True,
        "cost_usd": "0.25",
    }
    store(tmp_path, make_entry(project_id=str(project)), make_entry(project_id=str(project), **values))

    [columns] = sent
    assert values.keys() < columns.keys()
    assert not columns.keys() & {"trace_id", "rollout_id", "alloc_unit", "is_native", "request", "response"}
    names = ", ".join(values)
    stored = client.execute(f"SELECT {names} FROM requests ORDER BY user_id")  # noqa: S608 - of this test
    default = RequestRecord(request_id="", project_id="", ts=0, outcome="success", status_code=200)  # type: ignore[arg-type]  # for its defaults
    assert stored[0][:4] == tuple(getattr(default, name) for name in values)[:4]
    assert [str(value) for value in stored[1]] == ["ann", "responses", "2", "True", "0.25"]


def test_batch__sent_again__has_the_same_columns(tmp_path: Path) -> None:
    """The store knows a batch by its token, and the columns come from the frames alone."""
    entries = make_entry(user_id="ann"), make_entry()

    assert _columns(tmp_path, *entries) == _columns(tmp_path, *entries)
    assert "user_id" in _columns(tmp_path, *entries)
    assert "user_id" not in _columns(tmp_path, entries[1])
