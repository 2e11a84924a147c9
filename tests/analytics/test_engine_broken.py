"""The engine's server ends when chDB declares its own state broken."""

from __future__ import annotations

import os

import pytest

from analytics.clickhouse.engine.chdb_connection import EXIT_BROKEN, ChdbConnection
from analytics.clickhouse.engine.errors import EngineError
from tests.tables.cases import tabled


class Failing:
    """A chDB connection whose queries all fail in the same way."""

    def __init__(self, message: str) -> None:
        self._message = message

    def query(self, *args: object, **options: object) -> None:
        raise RuntimeError(self._message)


def test_execute__chdb_shuts_itself_down__ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "_exit", _leave)
    connection = ChdbConnection(Failing("Code: 236. DB::Exception: The server is shutting down due to a fatal error."))

    with pytest.raises(SystemExit) as caught:
        connection.execute("SELECT 1")

    assert caught.value.code == EXIT_BROKEN


@tabled
def test_execute__any_other_failure__is_reported_with_its_code(message: str, code: int) -> None:
    with pytest.raises(EngineError) as caught:
        ChdbConnection(Failing(message)).execute("SELECT 1")

    assert caught.value.code == code


def _leave(code: int) -> None:
    raise SystemExit(code)
