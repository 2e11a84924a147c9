"""Searches use the text indexes where the store has them."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from analytics.clickhouse import client, migrator, text_index
from analytics.queries import search as searching
from analytics.queries.search import SearchFilter, search
from analytics.request_log.record import SpoolEntry
from tests.analytics.requests.entries import chat
from tests.factories.analytics import make_entry, store

# Searches read the sessions under deletion from the SQL database.
pytestmark = pytest.mark.django_db


# Longer than the words of the vocabulary.
_LONG = "".join(f"{number:03x}" for number in range(600, 640))


@dataclass(frozen=True)
class _Line:
    line: str


@pytest.fixture
def unknown_indexes(empty_store: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty store, about whose indexes nothing is cached."""
    monkeypatch.setattr(searching, "_known_indexes", (False, float("-inf")))


def _indexes() -> set[str]:
    rows = client.execute(
        "SELECT name FROM system.data_skipping_indices WHERE database = currentDatabase() AND table = 'payloads'"
    )
    return {name for (name,) in rows}


def _sessions(project: uuid.UUID, term: str) -> list[str]:
    return [hit.request.session_id for hit in search(project, SearchFilter([term]), limit=10).hits]


def _fill(spool: Path, project: uuid.UUID, *more: SpoolEntry) -> None:
    store(
        spool,
        make_entry(**chat("A xylophonic sound", ""), project_id=str(project), session_id="one"),
        make_entry(**chat("用户请求退款", "Привет"), project_id=str(project), session_id="two"),
        *more,
    )


@pytest.mark.usefixtures("unknown_indexes")
def test_search__one_of_the_indexes_missing__reads_the_newest_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An index is missing while a migration builds it."""
    project = uuid.uuid4()
    migrator.migrate()
    _fill(tmp_path, project)
    client.execute("ALTER TABLE payloads DROP INDEX i_words")
    monkeypatch.setattr(searching, "READ_WITHOUT_INDEX", 1)

    found = search(project, SearchFilter(["xylophonic"]), limit=10)

    assert found.searched_since is not None


@pytest.mark.usefixtures("unknown_indexes")
def test_migrate__server_without_text_indexes__search_works_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = uuid.uuid4()
    monkeypatch.setattr(migrator, "_has_text_indexes", lambda: False)

    migrator.migrate()

    _fill(tmp_path, project)
    assert not text_index.NAMES & _indexes()
    assert _sessions(project, "LOPHON") == ["one"]
    assert _sessions(project, "退款") == ["two"]


# The indexes that answer a search for each term.
_INDEXES_OF = {
    "xylophonic": ["i_words"],
    "loph": ["i_words"],
    "oph": ["i_words"],
    "A xylophonic sou": ["i_words", "i_word_pairs"],
    "ПРИВ": ["i_words"],
    _LONG: ["i_long_words"],
    _LONG[20:29]: ["i_words", "i_long_words"],
    "退款": ["i_ideographs"],
    "求退款": ["i_ideographs"],
}


@pytest.mark.usefixtures("clickhouse")
def test_search__query__is_answered_by_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An expression that differs from the index's by a letter changes no result, only the time of the query."""
    project = uuid.uuid4()
    words = f"A word with {_LONG[20:29]} and {_LONG}, and {_LONG} again"
    _fill(tmp_path, project, make_entry(**chat(words, ""), project_id=str(project), session_id="long"))
    query, plans = client.query, []

    def explained(sql: str, params: object, *, row: type, name: str, **options: Any) -> list[object]:
        if name == "search.matches":
            plan = f"SELECT explain AS line FROM (EXPLAIN indexes = 1, actions = 1 {sql})"  # noqa: S608 - of the product
            plans.append("\n".join(line.line for line in query(plan, params, row=_Line, name="plan", **options)))  # type: ignore[arg-type]  # handed on
        return query(sql, params, row=row, name=name, **options)  # type: ignore[arg-type]  # handed on

    for term, indexes in _INDEXES_OF.items():
        plans.clear()
        with monkeypatch.context() as patch:
            patch.setattr(client, "query", explained)
            patch.setattr(searching, "_known_indexes", (False, float("-inf")))
            assert _sessions(project, term), term

        # The query reads no text for these conditions, so its rows are those of the index.
        assert all(f"__text_index_{index}_" in plans[0] for index in indexes), term


@pytest.mark.usefixtures("clickhouse")
def test_search__parts_of_long_words__are_found_and_nothing_else(tmp_path: Path) -> None:
    """The vocabulary has no long word. A text has one, another only a short one of the same letters."""
    project = uuid.uuid4()
    store(tmp_path, make_entry(**chat(f"see {_LONG}.", ""), project_id=str(project), session_id="long"))
    store(tmp_path / "short", make_entry(**chat(_LONG[30:40], ""), project_id=str(project), session_id="short"))

    assert _sessions(project, _LONG) == _sessions(project, _LONG.upper()) == ["long"]
    assert _sessions(project, _LONG[31:39]) == _sessions(project, _LONG[31:34]) == ["short", "long"]
    assert _sessions(project, f"see {_LONG[:7]}") == ["long"]
    assert _sessions(project, f"{_LONG[-7:]}.") == ["long"]
    assert _sessions(project, _LONG[1:40] + "x") == []
    rows = client.execute("SELECT word FROM vocabulary WHERE project_id = {p:UUID}", {"p": project})
    assert {word for (word,) in rows} >= {"", "see", _LONG[30:40]}
    assert _LONG not in {word for (word,) in rows}


@pytest.mark.usefixtures("clickhouse")
def test_search__part_of_more_words_than_are_asked_for__reads_the_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = uuid.uuid4()
    _fill(tmp_path, project)
    store(tmp_path / "more", make_entry(**chat("phonograph", ""), project_id=str(project), session_id="three"))
    monkeypatch.setattr(searching, "_MAX_WORDS", 1)

    found = search(project, SearchFilter(["phon"]), limit=10)

    assert [hit.request.session_id for hit in found.hits] == ["three", "one"]
    assert found.searched_since is None
