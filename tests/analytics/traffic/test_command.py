from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from analytics.clickhouse import client
from analytics.errors import AnalyticsQueryError
from analytics.management.commands import generate_traffic
from tests.factories.core import make_key, make_project
from tests.store_away import store_away
from tests.tables.cases import tabled

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command("generate_traffic", *arguments, verbosity=0, stdout=out)
    return out.getvalue()


@pytest.mark.usefixtures("clickhouse")
def test_it_writes_requests_of_the_project_with_its_keys() -> None:
    project = make_project("shop")
    key, _ = make_key(project)
    output = run("--requests", "300", "--project", "shop", "--days", "3", "--content-days", "1", "--seed", "9")
    assert output.startswith("300 requests of shop until ")
    found = client.execute("SELECT project_id, api_key_id, count(), min(ts), max(ts) FROM requests GROUP BY 1, 2")
    [(project_id, key_id, count, first, last)] = found
    assert (project_id, key_id, count) == (project.pk, key.pk, 300)
    assert datetime.now(UTC) - timedelta(days=3, minutes=5) < first < last < datetime.now(UTC)


@pytest.mark.usefixtures("clickhouse")
def test_the_same_until_is_written_once_and_the_only_project_needs_no_name() -> None:
    make_project()
    until = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    for _ in range(2):
        run("--requests", "120", "--until", until)
    assert client.execute("SELECT count() FROM requests") == [(120,)]


@pytest.mark.usefixtures("clickhouse")
def test_progress_is_reported_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    make_project()
    call_command("generate_traffic", "--requests", "50", stdout=io.StringIO())
    assert "50.0/50.0" in capsys.readouterr().err


@tabled
def test_bad_arguments_are_named(arguments: tuple[str, ...], problem: str) -> None:
    make_project()
    with pytest.raises(CommandError, match=problem):
        run(*arguments)


def test_the_project_must_exist_and_be_clear() -> None:
    with pytest.raises(CommandError, match="no project yet"):
        run("--requests", "1")
    with pytest.raises(CommandError, match="'nobody'"):
        run("--requests", "1", "--project", "nobody")
    make_project()
    make_project()
    with pytest.raises(CommandError, match="several projects"):
        run("--requests", "1")


def test_a_bad_file_of_texts_is_named(tmp_path: Path) -> None:
    make_project()
    file = tmp_path / "texts.jsonl"
    file.write_text("nonsense")
    with pytest.raises(CommandError, match="line 1: not JSON"):
        run("--requests", "1", "--texts", str(file))


def test_a_store_that_is_away_is_reported() -> None:
    make_project()
    with store_away(), pytest.raises(CommandError, match="analytics store"):
        run("--requests", "1")


def test_a_store_without_tables_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AnalyticsQueryError("The analytics store refused it.", server_code=60, reason="Unknown table")

    monkeypatch.setattr(generate_traffic, "generate", refuse)
    make_project()
    with pytest.raises(CommandError, match="migrate_analytics"):
        run("--requests", "1")
