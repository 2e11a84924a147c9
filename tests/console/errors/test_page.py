from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from analytics.clickhouse import client as store_client
from analytics.errors import AnalyticsUnavailableError
from console.errors import page as page
from core.models import Project
from tests.console.pages import shown
from tests.factories.analytics import make_entry, store

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

PATH = "/admin/errors/"


def fail(spool: Path, project: Project, count: int = 1, **values: Any) -> list[str]:
    fields: dict[str, Any] = {
        "outcome": "error",
        "status_code": 502,
        "error_type": "api_error",
        "error_code": "upstream_error",
    }
    # The range of a page ends with the second before.
    fields["ts"] = time.time_ns() // 1000 - 5_000_000
    entries = [make_entry(project_id=str(project.pk), **(fields | values)) for _ in range(count)]
    store(spool, *entries)
    return [entry.record.request_id for entry in entries]


def test_errors__kinds__each_with_its_figures_and_links(
    reader: Client, project: Project, spool: Path, api: APIClient
) -> None:
    fail(spool, project, 2)
    latest = fail(spool, project, 1)[-1]
    fail(spool, project, 1, error_code="timeout", status_code=504, model="<b>o1</b>")
    store(spool, make_entry(project_id=str(project.pk), ts=time.time_ns() // 1000 - 5_000_000))

    text = shown(reader, PATH, project, columns="code,model,count,share,sample")

    first, second = api.get("/api/llm/metrics/errors/groups").json()["results"]
    assert (first["error_count"], second["error_count"]) == (3, 1)
    for part in ("upstream_error", "timeout", "75 %", "25 %", "80 %", "2 kinds of errors", f'data-id="{latest}"'):
        assert part in text, part
    assert f"/admin/analytics/requests/{project.pk}/{latest}/" in text
    assert "error_code=upstream_error&amp;error_type=api_error&amp;provider=openai&amp;model=gpt-4o-mini" in text
    assert "&lt;b&gt;o1" in text
    assert "<b>o1" not in text


def test_errors__filters__kinds_with_one_of_the_values_and_none_left_out(
    reader: Client, project: Project, spool: Path
) -> None:
    fail(spool, project, 2)
    fail(spool, project, 1, error_code="timeout", model="o1")
    fail(spool, project, 1, error_code="refused", model="o2")

    text = shown(reader, PATH, project, error_code=["timeout", "refused"], not_model="o2")
    refused = shown(reader, PATH, project, user_id="ann")

    table = text[text.index("<table class=") :]
    assert ">timeout<" in table and ">upstream_error<" not in table and ">refused<" not in table
    assert "1 kind of errors" in text
    # The values beside the chosen ones are there with their counts.
    assert re.search(r'>upstream_error</a><a class="not"[^>]*>not<span class="sr"> upstream_error</span></a>', text)
    assert "user_id: Kinds of errors are not told apart by it." in refused


def test_peek__kind_of_error__its_latest_request_beside_the_list(reader: Client, project: Project, spool: Path) -> None:
    [latest] = fail(spool, project)

    text = shown(reader, PATH, project, peek=latest)

    assert f"peek={latest}" in text and 'tr aria-current="true"' in text
    assert "Open the request" in text


def test_errors__none__says_so_with_the_next_step(reader: Client, project: Project, spool: Path) -> None:
    store(spool, make_entry(project_id=str(project.pk), ts=time.time_ns() // 1000 - 5_000_000))

    text = shown(reader, PATH, project)

    assert "No request failed in this range." in text
    assert "See all requests" in text


def test_errors__many_kinds__page_by_page(
    reader: Client, project: Project, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "PAGE_ROWS", 2)
    for number in range(3):
        fail(spool, project, 3 - number, error_code=f"code_{number}")

    first, second = shown(reader, PATH, project), shown(reader, PATH, project, p="2")

    table = [text[text.index("<table class=") :] for text in (first, second)]
    assert [[f"code_{number}" in text for number in range(3)] for text in table] == [
        [True, True, False],
        [False, False, True],
    ]
    assert "p=2" in first
    for bad in ("0", "-1", "x", "9" * 30):
        assert "code_" in shown(reader, PATH, project, p=bad) or bad == "9" * 30


def test_errors__store_away__frame_and_message(
    reader: Client, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any, **__: Any) -> Any:
        raise AnalyticsUnavailableError("The analytics store does not answer.")

    monkeypatch.setattr(store_client, "query", away)

    text = shown(reader, PATH, project)

    assert text.count("The analytics store does not answer.") == 3
    assert "data-retry" in text
