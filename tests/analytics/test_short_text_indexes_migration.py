"""The upgrade of a store whose indexes of short texts read texts of ASCII alone as well."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from analytics.clickhouse import client, migrator, text_index
from analytics.queries.search import SearchFilter, search
from tests.analytics.old_stores import migrate_before
from tests.analytics.requests.entries import chat
from tests.factories.analytics import make_entry, store

# Searches read the sessions under deletion from the SQL database.
pytestmark = pytest.mark.django_db

_TEXTS = {
    "ascii": ("A xylophonic sound", "Played twice"),
    "prompt": ("用户请求退款 now", "Refunded"),
    "completion": ("Where is it", "Привет, the café is closed"),
}
_FOUND = {"oph": {"ascii"}, "退款": {"prompt"}, "退款 ": {"prompt"}, "вет": {"completion"}, "fé ": {"completion"}}


@pytest.fixture
def old_store(empty_store: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> uuid.UUID:
    """A project in a store of the release before."""
    migrate_before(45, monkeypatch, tmp_path)
    project = uuid.uuid4()
    _fill(tmp_path / "old", project, "old")
    return project


def test_upgrade__store_with_data__old_and_new_texts_are_found(old_store: uuid.UUID, tmp_path: Path) -> None:
    migrator.migrate()

    _fill(tmp_path / "new", old_store, "new")

    for term, names in _FOUND.items():
        assert _sessions(old_store, term) == {f"{age}-{name}" for age in ("old", "new") for name in names}
    assert ["isValidASCII" in expression for expression in _expressions()] == [True, True]


def test_upgrade__applied_twice__changes_nothing_more(old_store: uuid.UUID) -> None:
    migrator.migrate()
    expressions = _expressions()
    [migration] = [one for one in migrator.load_migrations() if one.number == 45]

    for statement in migration.statements(short_indexes=text_index.short_indexes()):
        client.execute(statement)

    assert _expressions() == expressions
    assert {term: _sessions(old_store, term) for term in _FOUND} == {
        term: {f"old-{name}" for name in names} for term, names in _FOUND.items()
    }


def test_upgrade__server_without_text_indexes__has_none_afterwards(
    empty_store: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrator, "_has_text_indexes", lambda: False)

    migrator.migrate()

    assert not _expressions()


def _fill(spool: Path, project: uuid.UUID, age: str) -> None:
    entries = [
        make_entry(**chat(*texts), project_id=str(project), session_id=f"{age}-{name}")
        for name, texts in _TEXTS.items()
    ]
    store(spool, *entries)


def _sessions(project: uuid.UUID, term: str) -> set[str]:
    return {hit.request.session_id for hit in search(project, SearchFilter([term]), limit=10).hits}


def _expressions() -> set[str]:
    rows = client.execute(
        "SELECT expr FROM system.data_skipping_indices WHERE database = currentDatabase() AND table = 'payloads'"
        " AND name IN ('i_few_letters', 'i_ideographs')"
    )
    return {expression for (expression,) in rows}
