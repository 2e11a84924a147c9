"""GET /api/llm/metrics/provider-latency reads the latencies that workers wrote to Redis."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from rest_framework.test import APIClient

from core.models import Project
from integrations.access.credentials import store_secret
from integrations.health import circuit, reader
from integrations.health.monitor import HealthMonitor
from integrations.health.targets import CircuitState, Target
from integrations.models import ProviderIntegration
from integrations.providers.errors import FailureKind
from tests.factories.core import make_key, make_project
from tests.integrations.health.workers import workers
from tests.waiting import eventually

pytestmark = pytest.mark.django_db

PATH = "/api/llm/metrics/provider-latency"
# Ids of the test database start at one in each run, and the suite's Redis may be an old one.
_ids = random.Random().sample(range(10**6, 10**9), 500)

Note = Callable[[HealthMonitor], None]


@pytest.fixture(autouse=True)
def long_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes open circuits stay open for the length of a test."""
    monkeypatch.setattr(circuit, "FIRST_OPEN_SECONDS", 600.0)
    monkeypatch.setattr(circuit, "MAX_OPEN_SECONDS", 600.0)


def integration(project: Project, provider: str, *, enabled: bool = True) -> int:
    row = ProviderIntegration(pk=_ids.pop(), project=project, provider=provider, enabled=enabled)
    store_secret(row, "sk-test-0000")
    row.save(force_insert=True)
    return row.pk


def note(*observations: Note) -> None:
    """Records results of calls as a worker, and waits until Redis has them."""

    async def see() -> None:
        async with workers(settings.REDIS_URL, 1) as (worker,):
            for observe in observations:
                observe(worker)
            await eventually(lambda: not worker.sync.pending)

    asyncio.run(see())


def successes(target: Target, *latencies: float) -> Note:
    def observe(worker: HealthMonitor) -> None:
        for latency in latencies:
            worker.note_success(target, latency)

    return observe


def failures(target: Target, times: int) -> Note:
    def observe(worker: HealthMonitor) -> None:
        for _ in range(times):
            worker.note_failure(target, FailureKind.UNAVAILABLE, 10.0)

    return observe


def ask(project: Project, **parameters: str) -> Any:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {make_key(project)[1]}", HTTP_X_PROJECT_ID=str(project.pk))
    return client.get(PATH, parameters)


def providers(project: Project) -> dict[str, dict[str, Any]]:
    answer = ask(project)
    assert answer.status_code == 200, answer.json()
    return {row["provider"]: row for row in answer.json()["providers"]}


def test_provider_latency__nothing_enabled__empty(project: Project) -> None:
    answer = ask(project)

    assert answer.status_code == 200
    assert answer.json()["providers"] == []
    assert answer.json()["window_seconds"] == 300
    assert answer.json()["generated_at"].endswith("Z")


def test_provider_latency__no_samples__nulls(project: Project) -> None:
    integration(project, "openai")

    assert providers(project) == {
        "openai": {
            "provider": "openai",
            "deployment": "openai",
            "p50_ms": None,
            "p95_ms": None,
            "p99_ms": None,
            "samples": 0,
            "outcomes": 0,
            "error_rate": 0.0,
            "status": "healthy",
            "models": [],
        }
    }


def test_provider_latency__samples_of_two_models__each_and_together(project: Project) -> None:
    key = integration(project, "openai")
    small, large = Target(key, "openai", "small"), Target(key, "openai", "large")
    note(successes(small, *map(float, range(1, 101))), successes(large, *map(float, range(1001, 1101))))

    found = providers(project)["openai"]
    assert (found["samples"], found["status"], found["error_rate"]) == (200, "healthy", 0.0)
    assert [found["p50_ms"], found["p95_ms"], found["p99_ms"]] == pytest.approx([100, 1090, 1098], rel=0.051)
    assert [model["model"] for model in found["models"]] == ["large", "small"]
    assert found["models"][1]["p50_ms"] == pytest.approx(50, rel=0.051)
    assert found["models"][1]["p99_ms"] == pytest.approx(99, rel=0.051)
    assert found["models"][1]["circuit"] == "closed"


def test_provider_latency__errors__degrade(project: Project) -> None:
    target = Target(integration(project, "groq"), "groq", "model")
    note(successes(target, *[50.0] * 16), failures(target, 4))

    found = providers(project)["groq"]
    assert (found["status"], found["error_rate"], found["samples"]) == ("degraded", 0.2, 16)
    assert found["models"][0]["status"] == "degraded"
    assert found["models"][0]["circuit"] == "closed"


def test_provider_latency__all_circuits_open__down(project: Project) -> None:
    target = Target(integration(project, "groq"), "groq", "model")
    note(failures(target, 5))

    found = providers(project)["groq"]
    assert (found["status"], found["p50_ms"], found["error_rate"]) == ("down", None, 1.0)
    assert found["models"][0]["circuit"] == "open"


def test_provider_latency__one_of_two_circuits_open__degraded(project: Project) -> None:
    key = integration(project, "groq")
    note(failures(Target(key, "groq", "bad"), 5), successes(Target(key, "groq", "good"), *[10.0] * 95))

    found = providers(project)["groq"]
    assert found["status"] == "degraded"
    assert [(model["model"], model["status"]) for model in found["models"]] == [("bad", "down"), ("good", "healthy")]


def test_provider_latency__long_rest_without_traffic__still_down_when_the_window_is_empty(project: Project) -> None:
    target = Target(integration(project, "groq"), "groq", "model")
    moment: list[float] = []
    note(
        lambda worker: worker.note_failure(target, FailureKind.RATE_LIMITED, 10.0, retry_after=600.0),
        lambda worker: moment.append(worker.clock()),
    )

    (later,) = reader.project_health(project.pk, now=moment[0] + 400)
    assert later.status is reader.HealthStatus.DOWN
    assert later.models[0].health.circuit is CircuitState.OPEN
    assert later.health.samples == 0

    (after,) = reader.project_health(project.pk, now=moment[0] + 1000)
    assert (after.status, after.models) == (reader.HealthStatus.HEALTHY, ())


def test_provider_latency__disabled_integration__is_not_listed(project: Project) -> None:
    target = Target(integration(project, "groq", enabled=False), "groq", "model")
    note(successes(target, 10.0))

    assert providers(project) == {}


def test_provider_latency__other_project__never_shows(project: Project) -> None:
    other = make_project()
    theirs, ours = integration(other, "openai"), integration(project, "openai")
    note(successes(Target(theirs, "openai", "secret-name"), 10.0), successes(Target(ours, "openai", "own"), 900.0))

    found = providers(project)["openai"]
    assert found["samples"] == 1
    assert [model["model"] for model in found["models"]] == ["own"]


def test_provider_latency__sandbox_of_all_projects__shows_only_the_models_it_declares(
    project: Project, tmp_path: Path, settings: Any
) -> None:
    settings.SANDBOX, settings.RUN_DIR = True, tmp_path
    (tmp_path / "sandbox.url").write_text("http://127.0.0.1:1/v1")
    note(successes(Target(0, "sandbox", "echo"), 10.0), successes(Target(0, "sandbox", "made-up-elsewhere"), 10.0))

    found = providers(project)["sandbox"]
    assert found["samples"] >= 1
    assert "echo" in [model["model"] for model in found["models"]]
    assert "made-up-elsewhere" not in [model["model"] for model in found["models"]]


def test_provider_latency__unknown_parameter__ignored_like_elsewhere(project: Project) -> None:
    assert ask(project, start_date="2026-01-01").status_code == 200


def test_provider_latency__redis_away__503_that_says_so(project: Project, settings: Any) -> None:
    integration(project, "openai")
    settings.REDIS_URL = "unix:///nowhere/at/all.sock"

    answer = ask(project)
    assert answer.status_code == 503
    assert answer.json()["error"] == {
        "message": "The live figures are not available: Redis does not answer.",
        "type": "service_unavailable_error",
        "code": "health_unavailable",
    }
