from __future__ import annotations

import json
from datetime import datetime
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection
from pytest_django import Settings

from core.keys.services import find_key, hash_key
from core.models import ApiKey, Project
from core.signals import project_created
from tests.factories.core import make_project
from tests.tables.cases import tabled

pytestmark = pytest.mark.django_db


def output(*command: str) -> str:
    out = StringIO()
    call_command(*command, stdout=out)
    return out.getvalue()


def test_bootstrap__json__one_line_with_a_working_key(settings: Settings) -> None:
    settings.PUBLIC_URL = "https://llm.example.com/"

    printed = output("bootstrap", "--name", "shop", "--json")

    assert printed.count("\n") == 1
    answer = json.loads(printed)
    assert list(answer) == ["project_id", "api_key", "base_url"]
    assert answer["base_url"] == "https://llm.example.com"
    record = find_key(hash_key(answer["api_key"]))
    assert record is not None
    assert record.project_id == UUID(answer["project_id"])
    assert record.scopes == {"gateway", "manage"}
    assert Project.objects.get(pk=answer["project_id"]).name == "shop"


def test_bootstrap__serve_runs__its_announced_address(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "gateway.url").write_text("http://127.0.0.1:4321\n")
    settings.PUBLIC_URL, settings.RUN_DIR = None, tmp_path
    assert json.loads(output("bootstrap", "--name", "shop", "--json"))["base_url"] == "http://127.0.0.1:4321"


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("0.0.0.0", "http://127.0.0.1:80"),  # noqa: S104 - a setting, nothing binds to it here
        ("::", "http://[::1]:80"),
        ("fe80::1", "http://[fe80::1]:80"),
    ],
)
def test_bootstrap__nothing_announced__host_and_port(
    settings: Settings, tmp_path: Path, host: str, address: str
) -> None:
    settings.PUBLIC_URL, settings.RUN_DIR, settings.HOST, settings.PORT = None, tmp_path, host, 80
    assert json.loads(output("bootstrap", "--name", "shop", "--json"))["base_url"] == address


def test_bootstrap__name_taken__refused_and_nothing_made() -> None:
    make_project("shop")
    with pytest.raises(CommandError, match="'shop' exists already"):
        output("bootstrap", "--name", "shop", "--json")
    assert not ApiKey.objects.exists()


@pytest.mark.parametrize("name", ["", "  ", "x" * 101])
def test_bootstrap__impossible_name__refused(name: str) -> None:
    with pytest.raises(CommandError, match="1 to 100 characters"):
        output("bootstrap", "--name", name)


def test_bootstrap__tables_missing__says_what_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection.introspection, "table_names", list)
    with pytest.raises(CommandError, match=r"run `manage\.py migrate`"):
        output("bootstrap", "--name", "shop")


def test_bootstrap__no_database__one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> list[str]:
        raise OperationalError("connection refused")

    monkeypatch.setattr(connection.introspection, "table_names", refuse)
    with pytest.raises(CommandError, match="cannot be reached: connection refused"):
        output("bootstrap", "--name", "shop")


def test_bootstrap__first_and_second__signal_tells_them_apart() -> None:
    received: list[tuple[str, bool]] = []

    def listen(*, project: Project, first: bool, **_: Any) -> None:
        received.append((project.name, first))

    project_created.connect(listen, weak=False, dispatch_uid="test")
    try:
        output("bootstrap", "--name", "one")
        output("bootstrap", "--name", "two")
    finally:
        project_created.disconnect(dispatch_uid="test")

    assert received == [("one", True), ("two", False)]


@pytest.mark.parametrize("by", ["id", "name"])
def test_create_api_key__by_id_or_name__prints_the_key(by: str) -> None:
    project = make_project("shop")
    named = str(project.pk) if by == "id" else "shop"

    key = output("create_api_key", "--project", named, "--name", "ci", "--scope", "gateway").strip()

    record = find_key(hash_key(key))
    assert record is not None
    assert (record.project_id, record.scopes, record.expires_at) == (project.pk, frozenset({"gateway"}), None)


def test_create_api_key__no_scope__is_refused_for_nothing_is_granted_unasked() -> None:
    make_project("shop")

    with pytest.raises(CommandError, match="--scope"):
        output("create_api_key", "--project", "shop", "--name", "ci")
    assert not ApiKey.objects.filter(name="ci").exists()


@tabled
def test_create_api_key__expires__read_as_utc(raw: str, until: datetime) -> None:
    make_project("shop")
    command = ["create_api_key", "--project", "shop", "--name", "ci", "--scope", "gateway", "--scope", "manage"]

    answer = json.loads(output(*command, "--expires", raw, "--json"))

    record = find_key(hash_key(answer["api_key"]))
    assert record is not None
    assert record.expires_at == until


@tabled
def test_create_api_key__bad_argument__clear_line(extra: list[str], complaint: str) -> None:
    make_project("shop")
    with pytest.raises(CommandError, match=complaint):
        output("create_api_key", "--name", "ci", *extra)
    assert not ApiKey.objects.exists()
