from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from analytics.request_log.record import AttemptRecord
from console.providers import page as page
from core.models import Project
from core.roles import Role
from integrations.access.credentials import store_secret
from integrations.connectivity.outcomes import ConnectionOutcome, Reason
from integrations.errors import HealthUnavailableError
from integrations.models import ProviderIntegration
from tests.console.pages import shown
from tests.factories.analytics import make_entry, store
from tests.factories.core import make_staff

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

PATH = "/admin/providers/"


@pytest.fixture
def integration(project: Project) -> ProviderIntegration:
    row = ProviderIntegration(project=project, provider="groq")
    store_secret(row, "gsk-test-0000")
    row.save()
    return row


@pytest.fixture
def administrator(client: Client, project: Project) -> Client:
    client.force_login(make_staff(Role.ADMINISTRATOR, project))
    return client


def latency(**values: Any) -> dict[str, Any]:
    shared = {"p50_ms": 840.0, "p95_ms": 2400.0, "p99_ms": None, "samples": 3, "outcomes": 4, "error_rate": 0.25}
    return {**shared, "status": "degraded", **values}


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    model = {**latency(), "model": "llama", "circuit": "half_open"}
    silent = latency(p50_ms=None, p95_ms=None, samples=0, outcomes=0, error_rate=0.0, status="healthy")
    found = {
        "window_seconds": 300,
        "generated_at": datetime.now(UTC),
        "providers": [
            {**latency(), "provider": "groq", "deployment": "groq", "models": [model]},
            {**silent, "provider": "openai", "deployment": "openai-eu", "models": []},
        ],
    }
    monkeypatch.setattr(page, "provider_latencies", lambda _: found)
    return found


@pytest.mark.usefixtures("live")
def test_providers__live__samples_beside_every_state(reader: Client, project: Project) -> None:
    text = shown(reader, PATH, project)

    for part in ("840 ms", "2.4 s", "degraded", "25 %", "1 of 1 half open", "no calls", "llama", "openai-eu (OpenAI)"):
        assert part in text, part
    assert "Calls" in text
    assert "Timed" in text
    assert "healthy" not in text[text.index("panel-live") : text.index("panel-history")]


@pytest.mark.usefixtures("live")
def test_providers__history_and_failovers__counts_and_links(reader: Client, project: Project, spool: Path) -> None:
    calls = (AttemptRecord("groq", "llama", error="unavailable"), AttemptRecord("openai", "gpt-4o"))
    hour_ago = int((datetime.now(UTC) - timedelta(hours=1)).timestamp() * 1e6)
    entries = [
        make_entry(project_id=str(project.pk), ts=hour_ago + number, attempts=calls, fallback_used=True)
        for number in range(3)
    ]
    store(spool, *entries, make_entry(project_id=str(project.pk), ts=hour_ago, provider="groq", model="llama"))

    text = shown(reader, PATH, project)

    for part in (
        "1 requests", "3 went on to another: 75 % failed", "State of Groq", "Groq/llama", "OpenAI/gpt-4o", "to OpenAI",
        "unavailable", "provider=groq",
    ):  # fmt: skip
        assert part in text, part


@pytest.mark.usefixtures("live", "integration")
def test_providers__reader__no_switches_and_403_for_their_actions(reader: Client, project: Project) -> None:
    assert "Keys and switches" not in shown(reader, PATH, project)

    answer = reader.post(f"{PATH}?project={project.pk}", {"action": "disable", "name": "groq"})

    assert answer.status_code == 403
    assert ProviderIntegration.objects.get().enabled


@pytest.mark.usefixtures("live", "integration")
def test_providers__administrator__switches_off_and_on(administrator: Client, project: Project) -> None:
    for action, is_enabled, button in (("disable", False, "Switch on<"), ("enable", True, "Switch off…<")):
        answer = administrator.post(f"{PATH}?project={project.pk}", {"action": action, "name": "groq"})

        assert answer.status_code == 302
        assert ProviderIntegration.objects.get().enabled is is_enabled
        assert button in shown(administrator, PATH, project)


@pytest.mark.usefixtures("live", "integration")
def test_providers__several_deployments__each_has_its_figures_and_its_switch(
    administrator: Client, project: Project, spool: Path
) -> None:
    second = ProviderIntegration(project=project, provider="groq", name="groq-eu")
    store_secret(second, "gsk-test-1111")
    second.save()
    hour_ago = int((datetime.now(UTC) - timedelta(hours=1)).timestamp() * 1e6)
    calls = (
        AttemptRecord("groq", "m", error="timeout", deployment="groq-eu"),
        AttemptRecord("groq", "m", deployment="groq"),
    )
    entry = make_entry(
        project_id=str(project.pk), ts=hour_ago, provider="groq", model="m", attempts=calls, fallback_used=True
    )
    store(spool, entry)

    text = shown(administrator, PATH, project)
    administrator.post(f"{PATH}?project={project.pk}", {"action": "disable", "name": "groq-eu"})

    for part in ("groq-eu (Groq)/m", "to Groq", "State of Groq: groq-eu", "State of Groq: groq", "name=groq-eu"):
        assert part in text, part
    assert set(ProviderIntegration.objects.values_list("name", "enabled")) == {("groq", True), ("groq-eu", False)}


@pytest.mark.usefixtures("live", "integration")
def test_providers__test__says_what_came_of_it(
    administrator: Client, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = ConnectionOutcome(False, Reason.INVALID_CREDENTIAL, "The key is wrong.", latency_ms=12.0)
    monkeypatch.setattr(page, "try_integration", lambda **_: outcome)

    administrator.post(f"{PATH}?project={project.pk}", {"action": "test", "name": "groq"})

    assert "The key is wrong. (12 ms)" in shown(administrator, PATH, project)


@pytest.mark.usefixtures("live")
@pytest.mark.parametrize(
    ("given", "message"),
    [({"action": "explode", "name": "groq"}, "no such action"), ({"action": "disable", "name": "x"}, "no ")],
)
def test_providers__bad_action__message(
    administrator: Client, project: Project, given: dict[str, str], message: str
) -> None:
    administrator.post(f"{PATH}?project={project.pk}", given)

    assert message in shown(administrator, PATH, project)


def test_providers__redis_away__message_and_the_other_panels(
    reader: Client, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(_: Any) -> Any:
        raise HealthUnavailableError("The live figures are not available: Redis does not answer.")

    monkeypatch.setattr(page, "provider_latencies", away)

    text = shown(reader, PATH, project)

    assert "The live figures are not available" in text
    assert "No provider had a request in this range." in text
