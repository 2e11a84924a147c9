"""The words of deleted texts leave the store's vocabulary, and those that other texts have stay in it."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from rest_framework.test import APIClient

from analytics.clickhouse import client
from analytics.deletion import vocabulary
from analytics.deletion.services import finish_due
from analytics.errors import AnalyticsUnavailableError
from analytics.queries.search import SearchFilter, search
from core.models import Project
from tests.analytics.deletion.deleting import SESSION, contents, erase, path_of, soon
from tests.analytics.requests.entries import chat
from tests.factories.analytics import make_entry, store

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]


def _words(project: Project) -> set[str]:
    sql = "SELECT DISTINCT word FROM vocabulary WHERE project_id = {project:UUID}"
    return {word for (word,) in client.execute(sql, {"project": project.pk})}


def _store(spool: Path, project: Project) -> set[str]:
    """Stores a text that will be deleted and another; returns the words of the other."""
    own: dict[str, Any] = {"project_id": str(project.pk)}
    store(spool / "other", make_entry(**chat("shared granite", ""), **own, session_id="other"))
    kept = _words(project)
    store(spool / "one", make_entry(**chat("shared zirkonium", "zirkonium"), **own, session_id=SESSION))
    return kept


def _before(patched: pytest.MonkeyPatch, statement: str, act: Callable[[], object]) -> None:
    """Has `act` run before the first statement that begins like this."""
    execute, waiting = client.execute, [act]

    def guarded(sql: str, *arguments: Any, **options: Any) -> Any:
        if sql.startswith(statement) and waiting:
            waiting.pop()()
        return execute(sql, *arguments, **options)

    patched.setattr(client, "execute", guarded)


def _fail() -> None:
    raise AnalyticsUnavailableError("The analytics store does not answer.")


def test_session__deleted__its_words_are_gone_from_every_table(api: APIClient, project: Project, spool: Path) -> None:
    kept = _store(spool, project)
    before = _words(project)
    assert "zirkonium" in repr(contents(project)["vocabulary"])

    erase(api, path_of(SESSION))

    assert before == {*kept, "zirkonium"}
    assert "zirkonium" not in repr(contents(project))
    assert _words(project) == kept
    assert {"shared", "granite"} <= kept
    assert len(search(project.pk, SearchFilter(["shar"]), limit=10).hits) == 1
    assert not search(project.pk, SearchFilter(["zirko"]), limit=10).hits


def test_texts__deleted_one_after_the_other__words_go_with_the_last(
    api: APIClient, project: Project, spool: Path
) -> None:
    _store(spool, project)

    erase(api, path_of(SESSION))
    erase(api, path_of("other"))

    assert _words(project) == set()


@pytest.mark.parametrize("statement", ["DELETE FROM payloads", "DELETE FROM vocabulary", "DELETE FROM requests"])
def test_deletion__broken_off__takes_words_away_once(
    api: APIClient, project: Project, spool: Path, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    kept = _store(spool, project)

    with monkeypatch.context() as patched:
        _before(patched, statement, _fail)
        erase(api, path_of(SESSION))
    assert contents(project)["requests"]
    finish_due(soon(5))

    assert "zirkonium" not in repr(contents(project))
    assert _words(project) == kept


@pytest.mark.parametrize("statement", ["DELETE FROM payloads", "DELETE FROM vocabulary", "DELETE FROM requests"])
def test_words__of_a_text_stored_during_a_deletion__are_found(
    api: APIClient, project: Project, spool: Path, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    _store(spool, project)
    later = make_entry(**chat("zirkonium", ""), project_id=str(project.pk), session_id=str(uuid4()))

    with monkeypatch.context() as patched:
        _before(patched, statement, lambda: store(spool / "later", later))
        erase(api, path_of(SESSION))

    assert "zirkonium" in _words(project)
    [hit] = search(project.pk, SearchFilter(["irkoni"]), limit=10).hits
    assert str(hit.request.request_id) == later.record.request_id


def test_words__taken_away_and_not_given_back__are_by_the_next_try(
    api: APIClient, project: Project, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process ends after it has removed words of a text that was stored meanwhile."""
    _store(spool, project)
    later = make_entry(**chat("zirkonium", ""), project_id=str(project.pk), session_id=str(uuid4()))

    with monkeypatch.context() as patched:
        _before(patched, "DELETE FROM vocabulary", lambda: store(spool / "later", later))
        patched.setattr(vocabulary, "wait_for_running", lambda _: _fail())
        erase(api, path_of(SESSION))
    assert "zirkonium" not in _words(project)
    finish_due(soon(5))

    assert len(search(project.pk, SearchFilter(["irkoni"]), limit=10).hits) == 1


def test_texts__of_many_different_words__lose_them_in_slices(
    api: APIClient, project: Project, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = _store(spool, project)
    chance = random.Random(3)
    own: dict[str, Any] = {"project_id": str(project.pk), "session_id": SESSION}
    texts = [" ".join(f"{chance.getrandbits(32):08x}" for _ in range(120)) + " shared" for _ in range(6)]
    store(spool / "many", *(make_entry(**chat(text, ""), **own) for text in texts))
    for name, value in (("_SLICE_BYTES", 2_000), ("_ASKED_AT_ONCE", 50), ("_DELETED_AT_ONCE", 100)):
        monkeypatch.setattr(vocabulary, name, value)

    erase(api, path_of(SESSION))

    assert _words(project) == kept
