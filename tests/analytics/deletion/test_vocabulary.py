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
from analytics.deletion.vocabulary import forget_all_words
from analytics.errors import AnalyticsUnavailableError
from analytics.queries.search import SearchFilter, search
from core.models import Project
from tests.analytics.deletion.deleting import SESSION, contents, erase, path_of, soon
from tests.analytics.requests.entries import chat
from tests.factories.analytics import make_entry, store

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]


def _words(project: Project) -> dict[str, int]:
    rows = client.execute(
        "SELECT word, sum(occurrences) FROM vocabulary WHERE project_id = {project:UUID} GROUP BY word",
        {"project": project.pk},
    )
    return dict(rows)


def _store(spool: Path, project: Project) -> dict[str, int]:
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

    assert before["zirkonium"] == 2
    assert "zirkonium" not in repr(contents(project))
    assert _words(project) == kept
    assert (kept["shared"], kept["granite"]) == (1, 1)
    assert len(search(project.pk, SearchFilter(["shar"]), limit=10).hits) == 1
    assert not search(project.pk, SearchFilter(["zirko"]), limit=10).hits


def test_texts__deleted_one_after_the_other__words_go_with_the_last(
    api: APIClient, project: Project, spool: Path
) -> None:
    _store(spool, project)

    erase(api, path_of(SESSION))
    erase(api, path_of("other"))

    assert _words(project) == {}


@pytest.mark.parametrize(
    "statement", ["DELETE FROM payloads", "OPTIMIZE TABLE vocabulary", "DELETE FROM vocabulary", "DELETE FROM requests"]
)
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


@pytest.mark.parametrize(
    "statement", ["DELETE FROM payloads", "OPTIMIZE TABLE vocabulary", "DELETE FROM vocabulary", "DELETE FROM requests"]
)
def test_words__of_a_text_stored_during_a_deletion__are_found(
    api: APIClient, project: Project, spool: Path, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    _store(spool, project)
    later = make_entry(**chat("zirkonium", ""), project_id=str(project.pk), session_id=str(uuid4()))

    with monkeypatch.context() as patched:
        _before(patched, statement, lambda: store(spool / "later", later))
        erase(api, path_of(SESSION))
    client.execute("OPTIMIZE TABLE vocabulary FINAL")
    forget_all_words()

    assert _words(project)["zirkonium"] == 1
    [hit] = search(project.pk, SearchFilter(["irkoni"]), limit=10).hits
    assert str(hit.request.request_id) == later.record.request_id


def test_words__of_a_merge_that_did_nothing__are_merged_again(
    api: APIClient, project: Project, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server leaves parts alone that it is merging already."""
    kept = _store(spool, project)
    execute, merges = client.execute, list[str]()

    def without_the_first(sql: str, *arguments: Any, **options: Any) -> Any:
        if sql.startswith("OPTIMIZE"):
            merges.append(sql)
            if len(merges) == 1:
                return []
        return execute(sql, *arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(client, "execute", without_the_first)
        erase(api, path_of(SESSION))

    assert len(merges) == 2
    assert _words(project) == kept


def test_words__that_could_not_be_merged__go_in_the_night(
    api: APIClient, project: Project, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = _store(spool, project)
    execute = client.execute

    def without_merges(sql: str, *arguments: Any, **options: Any) -> Any:
        return [] if sql.startswith("OPTIMIZE") else execute(sql, *arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(client, "execute", without_merges)
        erase(api, path_of(SESSION))
    assert _words(project)["zirkonium"] == 0

    forget_all_words()

    assert "zirkonium" not in repr(contents(project))
    assert _words(project) == kept


def test_texts__of_many_different_words__are_subtracted_in_slices_each_once(
    api: APIClient, project: Project, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first try ends between two slices, and the second finds the pieces that the first has fixed."""
    kept = _store(spool, project)
    chance = random.Random(3)
    own: dict[str, Any] = {"project_id": str(project.pk), "session_id": SESSION}
    texts = [" ".join(f"{chance.getrandbits(32):08x}" for _ in range(120)) + " shared" for _ in range(6)]
    store(spool / "many", *(make_entry(**chat(text, ""), **own) for text in texts))
    monkeypatch.setattr(vocabulary, "_PIECE_BYTES", 500)
    insert, tokens = client.insert, list[str]()

    def counted(table: str, *arguments: Any, token: str) -> None:
        if table == "vocabulary":
            if len(tokens) == 5:
                tokens.append("")
                _fail()
            tokens.append(token)
        insert(table, *arguments, token=token)

    monkeypatch.setattr(client, "insert", counted)
    erase(api, path_of(SESSION))
    broken_off = list(filter(None, tokens))
    monkeypatch.setattr(vocabulary, "_PIECE_BYTES", 10_000)
    finish_due(soon(5))

    assert len(broken_off) == 5
    assert [token for token in tokens[6:] if token in broken_off] == broken_off
    assert len(set(tokens)) > 12
    assert _words(project) == kept
