from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db.backends.sqlite3.base import DatabaseWrapper
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import path

_connection: DatabaseWrapper


def _write(request: HttpRequest) -> HttpResponse:
    with _connection.cursor() as cursor:
        cursor.execute("INSERT INTO notes VALUES (1)")
    return HttpResponse("written")


urlpatterns = [path("admin/notes/", _write), path("api/notes", _write)]
pytestmark = [pytest.mark.urls(__name__), pytest.mark.django_db]


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[None]:
    global _connection
    from django.db import connections

    options = {**connections.databases["default"], "ENGINE": "django.db.backends.sqlite3", "NAME": str(tmp_path / "db")}
    _connection = DatabaseWrapper({**options, "OPTIONS": {"timeout": 0.01}}, "locked")
    with sqlite3.connect(tmp_path / "db", isolation_level=None) as holder:
        holder.execute("CREATE TABLE notes (number)")
        holder.execute("BEGIN EXCLUSIVE")
        yield
        holder.execute("ROLLBACK")
    holder.close()
    _connection.close()


@pytest.mark.usefixtures("locked")
def test_page__database_locked__503_and_when_to_try_again() -> None:
    answer = Client(raise_request_exception=False).post("/admin/notes/")

    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) > 0
    assert "locked" not in answer.content.decode()


@pytest.mark.usefixtures("locked")
def test_api__database_locked__the_envelope_and_when_to_try_again() -> None:
    answer = Client(raise_request_exception=False).post("/api/notes")

    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) > 0
    assert answer.json()["error"]["code"] == "service_unavailable"
