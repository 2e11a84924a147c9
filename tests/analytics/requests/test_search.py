# ruff: noqa: RUF001 - letters of many scripts are what is tested
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rest_framework.test import APIClient

from core.models import Project
from tests.analytics.requests.conftest import entry
from tests.factories.analytics import store

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]


def found(api: APIClient, query: str, **body: Any) -> list[str]:
    """The sessions of the requests found, which the tests use as names."""
    answer = api.post("/api/llm/search", {"query": query, **body})
    assert answer.status_code == 200, answer.content
    return [item["session_id"] for item in answer.json()["results"]]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("Xylophonic", ["latin"]),
        ("LOPHON", ["latin"]),
        ("xylophonic refund", ["latin"]),
        ("refund absent", []),
        ('"crimson umbrella"', ["latin"]),
        ('"umbrella crimson"', []),
        ("umbrella crimson", ["latin"]),
        ("ПРИВЕТ", ["russian"]),
        ("риве", ["russian"]),
        ("istanbul", ["turkish"]),
        ("İSTANBUL", ["turkish"]),
        ("IŞIK", ["turkish"]),
        ("ΟΔΟΣ", ["greek"]),
        ("οδος", ["greek"]),
        ("退款", ["chinese"]),
        ("退", ["chinese"]),
        ("用户请求退款", ["chinese"]),
        ("款退", []),
        ("مرحبا", ["arabic"]),
        ("🙂", ["arabic"]),
        ("100%", ["signs"]),
        ("a_b", ["signs"]),
        ("aXb", []),
        ("\\d+\\", ["signs"]),
        ("it's", ["signs"]),
        ('say "', []),
        ("x", ["latin"]),
        ("user: question", []),
    ],
)
def test_search__texts_of_the_world__finds_what_holds_every_part(
    api: APIClient, project: Project, spool: Path, query: str, expected: list[str]
) -> None:
    store(
        spool,
        entry(project, "A xylophonic sound", "Refund the crimson\numbrella, crimson umbrella", 1, session_id="latin"),
        entry(project, "Скажи Привет", "ok", 2, session_id="russian"),
        entry(project, "İstanbul ışık", "ok", 3, session_id="turkish"),
        entry(project, "Ποια οδός;", "Η ΟΔΟΣ και η οδος", 4, session_id="greek"),
        entry(project, "用户请求退款。", "ok", 5, session_id="chinese"),
        entry(project, "مرحبا", "ok 🙂", 6, session_id="arabic"),
        entry(project, "100% of a_b in c:\\d+\\", "it's", 7, session_id="signs"),
    )

    assert found(api, query) == expected
