from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from analytics.clickhouse import client as store_client
from analytics.errors import AnalyticsUnavailableError
from core.models import Project
from core.roles import Role
from integrations.services import IntegrationChange, add_integration
from tests.console.pages import shown
from tests.factories.analytics import make_entry, store
from tests.factories.core import make_staff

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]
LIST = "/admin/models/"


@pytest.fixture
def reader(project: Project, spool: Path) -> Client:
    for provider in ("openai", "openrouter"):
        change = IntegrationChange(secret="sk-1234567890", base_url="", options={}, secret_extra=None)
        add_integration(project_id=project.pk, provider=provider, change=change)
    called: dict[str, Any] = {"project_id": str(project.pk), "provider": "openai", "latency_ms": 2_000, "ttft_ms": 500}
    store(spool, *(make_entry(**called, model=model) for model in ("gpt-4o", "gpt-4o", "gpt-gone")))
    client = Client()
    client.force_login(make_staff(Role.READER_WITHOUT_CONTENT, project))
    return client


def test_list__used_models_first__and_those_of_other_providers_when_asked_for(reader: Client, project: Project) -> None:
    page = shown(reader, LIST, project)
    everything = shown(reader, LIST, project, all="1", provider="anthropic")

    assert page.index("/admin/models/gpt-4o/?") < page.index("/admin/models/gpt-gone/?")
    assert "tools" in page and "500 ms" in page
    assert "cannot be called" not in page.partition("gpt-gone")[2].partition("</tr>")[2]
    assert "claude-" in everything and "cannot be called" in everything


def test_list__filters_and_sorting__in_the_address(reader: Client, project: Project) -> None:
    found = shown(reader, LIST, project, q="gpt-4o", ability="audio")
    nothing = shown(reader, LIST, project, q="no such model")
    odd = shown(reader, LIST, project, ability="flying", sort="beauty", p="x")

    assert "gpt-4o-audio" in found and "/admin/models/gpt-gone/" not in found
    assert "No model matches." in nothing
    assert "/admin/models/gpt-4o/?" in odd
    assert 'aria-sort="descending"' in shown(reader, LIST, project, sort="-request_count")


def test_model__at_every_provider__side_by_side_with_links(reader: Client, project: Project) -> None:
    page = shown(reader, f"{LIST}gpt-4o/", project)

    assert page.count("openrouter/openai/gpt-4o<") >= 1 and "openrouter" in page.lower()
    assert "2.0 s" in page
    assert "/admin/prices/model/?" in page and "Can: " in page


def test_model__that_only_the_log_knows__is_shown__and_one_that_nobody_knows_is_404(
    reader: Client, project: Project
) -> None:
    gone = shown(reader, f"{LIST}gpt-gone/", project)
    nobody: Any = reader.get(f"{LIST}no-such-model/", {"project": str(project.pk)})

    assert "Requests of the range" in gone
    assert nobody.status_code == 404
    assert "No provider that is known here" in b"".join(nobody.streaming_content).decode()


def test_model__store_away__shows_prices_without_figures(
    reader: Client, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any, **__: Any) -> None:
        raise AnalyticsUnavailableError("The request log does not answer.")

    monkeypatch.setattr(store_client, "query", away)
    page = shown(reader, f"{LIST}gpt-4o/", project)

    assert "The request log does not answer." in page
    assert "Dollars per million tokens" in page
