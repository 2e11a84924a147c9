"""The database goes away behind a running gateway: what workers have read keeps working, anything else is a 503."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.fakes import scripted as play
from tests.fakes.scripted import ScriptedServer
from tests.gateway.conftest import LONG_TIMEOUTS
from tests.gateway.service import GatewayService
from tests.gateway.wire import assert_error, body


@pytest.fixture
def own_service() -> Iterator[GatewayService]:
    """A service of the test's own, whose one worker re-reads its snapshots often."""
    with GatewayService(workers=1, settings={**LONG_TIMEOUTS, "SNAPSHOT_SECONDS": "0.2"}) as running:
        yield running


def take_away(service: GatewayService) -> bytes:
    """Makes the database impossible to open and returns its content. The seeder is closed."""
    service.seeder.close()
    with closing(sqlite3.connect(service.database)) as connection:
        # SQLite has moved its log into the one file when no reader is left.
        done = service.until(
            lambda: connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone(), lambda row: not row[0]
        )
        assert not done[0]
    with service.held():
        content = service.database.read_bytes()
        for file in service.var.glob("db.sqlite3*"):
            file.unlink()
        service.database.mkdir()
    return content


def test_database__away__known_keys_work_and_unknown_keys_get_503(
    own_service: GatewayService, upstream: ScriptedServer
) -> None:
    # The worker knows one key, and has never seen the other.
    upstream.play("away", play.answer("still here"))
    known = own_service.new_project(base_urls={"openai": upstream.base_url("away")})
    unseen = own_service.new_project(base_urls={"openai": upstream.base_url("away")})
    assert known.post(body()).status_code == 200

    # The database cannot be opened any more.
    content = take_away(own_service)

    # The known key works beyond several attempts at re-reading, and the unseen one is not called invalid.
    for _ in range(10):
        assert known.post(body()).status_code == 200
        refused = own_service.until(lambda: unseen.post(body()), lambda r: r.status_code == 503)
        assert_error(refused, 503, "service_unavailable", type="service_unavailable_error")
    assert "database.away" in own_service.until(own_service.log.read_text, lambda log: "database.away" in log)
    assert own_service.log.read_text().count("database.away") <= 2

    # When the database is back, both keys work without a restart.
    with own_service.held():
        own_service.database.rmdir()
        own_service.database.write_bytes(content)
    recovered = own_service.until(lambda: unseen.post(body()).status_code, lambda status: status == 200)
    assert recovered == 200
    assert known.post(body()).status_code == 200
