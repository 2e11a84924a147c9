from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from core.models import Project
from core.roles import Role
from core.ui import formats
from tests.console.conftest import shown, signed_in
from tests.factories.analytics import make_entry, store
from tests.factories.core import client_of
from tests.factories.prompts import make_config

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

PATH = "/admin/usage/prompt-caches/"


@pytest.fixture
def reader(project: Project) -> Client:
    return signed_in(project, Role.READER_WITHOUT_CONTENT)


def entry(project: Project, **values: Any) -> Any:
    return make_entry(
        project_id=str(project.pk),
        ts=int((datetime.now(UTC) - timedelta(hours=1)).timestamp() * 1_000_000),
        provider="anthropic",
        model="claude-sonnet-5",
        prompt_tokens=10_000,
        cache_read_tokens=9_000,
        cost_known=True,
        cost_input_usd="0.0020000000",
        cost_cache_read_usd="0.0018000000",
        **values,
    )


def test_page__of_two_prompts__shows_what_the_api_says(project: Project, reader: Client, spool: Path) -> None:
    config = make_config(project, versions=2)
    store(spool, entry(project), entry(project, prompt_config_id=str(config.pk), prompt_version=2))

    page = shown(reader, project, PATH, range="24h")

    rows = client_of(project).get("/api/llm/metrics/prompt-cache").json()["results"]
    assert len(rows) == 2
    for row in rows:
        assert row["saved_usd"] == pytest.approx(0.0162)
        assert formats.money(row["saved_usd"]) in page
    assert "90 %" in page
    assert f"{config.name}, version 2" in page
    assert "without a managed prompt" in page


def test_page__without_requests__says_so(project: Project, reader: Client) -> None:
    assert "No request in this range." in shown(reader, project, PATH)


def test_usage__leads_to_the_page(project: Project, reader: Client) -> None:
    assert f'href="{PATH}?project={project.pk}' in shown(reader, project, "/admin/usage/")
