"""A text that several requests have is erased with the last of them, and never from under a request that stays."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from rest_framework.test import APIClient

from analytics.clickhouse import client
from analytics.deletion.services import finish_due
from analytics.errors import AnalyticsUnavailableError
from analytics.queries.search import SearchFilter, search
from analytics.request_log.record import SpoolEntry
from analytics.shipper.loop import Shipper
from analytics.spool.writer import SpoolWriter
from core.models import Project
from tests.analytics.deletion.deleting import SESSION, contents, erase, path_of, soon
from tests.factories.analytics import make_entry, store

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

_HISTORY = [{"role": "user", "content": "zirkonium " * 300}, {"role": "assistant", "content": "granite " * 300}]


def _entry(project: Project, session: str = SESSION, more: str = "go on", **values: Any) -> SpoolEntry:
    messages = [*_HISTORY, {"role": "user", "content": more}]
    body = json.dumps({"model": "m", "messages": messages}).encode()
    return make_entry(body, b"{}", project_id=str(project.pk), session_id=session, **values)


def _append(spool: Path, *entries: SpoolEntry) -> None:
    writer = SpoolWriter(spool)
    for entry in entries:
        writer.append(entry)
    writer.close()


def _body(api: APIClient, entry: SpoolEntry) -> Any:
    return api.get(f"/api/llm/requests/{entry.record.request_id}").json()["request"]


def _sent(entry: SpoolEntry) -> Any:
    return json.loads(entry.request)


def _copies(project: Project) -> list[date]:
    sql = "SELECT DISTINCT drop_date FROM shared_texts WHERE project_id = {p:UUID} ORDER BY drop_date"
    return [found for (found,) in client.execute(sql, {"p": project.pk})]


def _is_found(project: Project, *entries: SpoolEntry) -> bool:
    hits = search(project.pk, SearchFilter(["irkoni", "granite"]), limit=10).hits
    return {str(hit.request.request_id) for hit in hits} == {one.record.request_id for one in entries}


def _before(patched: pytest.MonkeyPatch, statement: str, act: Callable[[], object]) -> None:
    execute, waiting = client.execute, [act]

    def guarded(sql: str, *arguments: Any, **options: Any) -> Any:
        if sql.lstrip().startswith(statement) and waiting:
            waiting.pop()()
        return execute(sql, *arguments, **options)

    patched.setattr(client, "execute", guarded)


def _fail() -> None:
    raise AnalyticsUnavailableError("The analytics store does not answer.")


def test_text__of_two_sessions__goes_with_the_last(api: APIClient, project: Project, spool: Path) -> None:
    one, other = _entry(project), _entry(project, "other")
    store(spool, one, other)
    assert len(contents(project)["shared_texts"]) == 2

    erase(api, path_of(SESSION))

    assert _body(api, other) == _sent(other)
    assert _is_found(project, other)

    erase(api, path_of("other"))

    assert not {"zirkonium", "granite"} & set(repr(contents(project)).replace("'", " ").split())
    assert contents(project)["shared_texts"] == contents(project)["vocabulary"] == []


def test_text__of_a_request_that_would_have_stayed_longer__stays_as_long_as_the_other(
    api: APIClient, project: Project, spool: Path
) -> None:
    short, long = _entry(project, "other", retention_days=10), _entry(project, retention_days=30)
    store(spool, short, long)
    first, second = _copies(project)
    assert second - first == timedelta(days=20)

    erase(api, path_of(SESSION))

    assert _copies(project) == [first]
    assert _body(api, short) == _sent(short)


@pytest.mark.parametrize("statement", ["DELETE FROM vocabulary", "DELETE FROM shared_texts", "DELETE FROM payloads"])
def test_deletion__broken_off__is_finished_by_the_task(
    api: APIClient, project: Project, spool: Path, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    store(spool, _entry(project))

    with monkeypatch.context() as patched:
        _before(patched, statement, _fail)
        erase(api, path_of(SESSION))
    assert contents(project)["payloads"]
    finish_due(soon(5))

    assert contents(project)["shared_texts"] == contents(project)["vocabulary"] == contents(project)["payloads"] == []


def test_text__erased_while_the_shipper_remembers_it__is_stored_again(
    api: APIClient, project: Project, spool: Path
) -> None:
    shipper = Shipper(spool)
    _append(spool, _entry(project))
    shipper.drain()
    erase(api, path_of(SESSION))
    assert _copies(project) == []
    after = _entry(project, more="what else?", ts=int(soon(1).timestamp() * 1e6))
    _append(spool, after)
    shipper.drain()
    shipper.close()

    assert _body(api, after) == _sent(after)
    assert _is_found(project, after)


@pytest.mark.parametrize(
    "statement", ["SELECT text_id, max(drop_date)", "DELETE FROM shared_texts", "DELETE FROM payloads"]
)
def test_text__of_a_request_stored_during_a_deletion__is_there(
    api: APIClient, project: Project, spool: Path, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    shipper = Shipper(spool)
    _append(spool, _entry(project))
    shipper.drain()
    later = _entry(project, "later")
    _append(spool, later)

    with monkeypatch.context() as patched:
        _before(patched, statement, shipper.drain)
        erase(api, path_of(SESSION))
    shipper.close()

    assert _body(api, later) == _sent(later)
    assert _is_found(project, later)


def test_text__erased_between_texts_and_requests_of_a_batch__is_stored_again(
    api: APIClient, project: Project, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(spool / "one", _entry(project))
    later = _entry(project, "later")
    insert = client.insert_columns

    def erased_first(table: str, columns: Any, *, token: str) -> None:
        if table == "ingest":
            erase(api, path_of(SESSION))
            assert _copies(project) == []
        insert(table, columns, token=token)

    with monkeypatch.context() as patched:
        patched.setattr(client, "insert_columns", erased_first)
        store(spool / "later", later)

    assert _body(api, later) == _sent(later)
    assert _is_found(project, later)
