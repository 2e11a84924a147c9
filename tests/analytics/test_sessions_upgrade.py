"""Sessions of a store from before `session_days`: the past says what the view says of the same requests."""

from __future__ import annotations

import random
import uuid
from pathlib import Path
from typing import Any

import pytest

from analytics.clickhouse import client, lease, migrator
from analytics.contracts import Outcome
from analytics.errors import AnalyticsQueryError
from analytics.queries.session_filters import SessionFilter
from analytics.queries.sessions import SessionRow, get_session, list_sessions
from tests.analytics.test_migrations import first_release
from tests.factories.analytics import make_entry, store

__all__ = ["first_release"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("first_release")]

_START = 1_780_000_000_000_000
_DAY = 86_400_000_000


def fill(spool: Path, project: uuid.UUID) -> None:
    """The same requests for every project."""
    chance = random.Random(5)
    entries = [
        make_entry(
            project_id=str(project),
            ts=_START + number * 7_000_000 + chance.randrange(9) * _DAY,
            session_id=chance.choice(["", "one", "two/2", "three"]),
            user_id=chance.choice(["", "ann", "bob"]),
            model=chance.choice(["", "m1", "m2"]),
            provider=chance.choice(["", "openai"]),
            outcome=chance.choice(list(Outcome)),
            cache_read_tokens=chance.randrange(10),
            cache_write_tokens=chance.randrange(10),
            cost_known=chance.random() < 0.5,
            cost_usd=f"{chance.randrange(1000)}.{chance.randrange(10**10):010d}",
            retention_days=chance.choice([1000, 4000]),
        )
        for number in range(200)
    ]
    store(spool, *entries)


def sessions(project: uuid.UUID) -> list[SessionRow]:
    listed = list_sessions(project, SessionFilter(), limit=10, offset=0)[1]
    return [found for one in listed if (found := get_session(project, one.session_id))]


def test_migrations__store_with_sessions__same_sums_as_of_new_ones(spool: Path) -> None:
    old, new = uuid.uuid4(), uuid.uuid4()
    fill(spool, old)

    migrator.migrate()
    fill(spool, new)

    assert len(sessions(old)) == 3
    assert sessions(old) == sessions(new)
    tables = {name for (name,) in client.execute("SELECT name FROM system.tables WHERE database = currentDatabase()")}
    assert "ingest" in tables
    assert not tables & {"sessions", "sessions_mv", "ingest_closed"}


def test_migrations__broken_off_after_any_statement__same_sums(spool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = uuid.uuid4(), uuid.uuid4()
    fill(spool, old)
    (migration,) = [one for one in migrator.load_migrations() if one.name == "0010_session_days"]

    for allowed in range(len(list(migration.statements(text_indexes="")))):
        with monkeypatch.context() as patched:
            patched.setattr(migrator, "load_migrations", lambda: [migration])
            patched.setattr(client, "execute", failing_after(allowed))
            with pytest.raises(AnalyticsQueryError):
                migrator.migrate()
    migrator.migrate()
    fill(spool, new)
    client.execute("TRUNCATE TABLE schema_migrations")
    migrator.migrate()

    assert len(sessions(old)) == 3
    assert sessions(old) == sessions(new)


def failing_after(allowed: int) -> Any:
    execute, left = client.execute, allowed

    def run(sql: str, *arguments: Any, **options: Any) -> list[tuple[Any, ...]]:
        nonlocal left
        if sql.startswith(lease.MARK):
            left -= 1
            if left < 0:
                raise AnalyticsQueryError("broken off", server_code=0, reason="by the test")
        return execute(sql, *arguments, **options)

    return run
