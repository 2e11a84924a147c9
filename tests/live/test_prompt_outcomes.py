from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import openai
import pytest
import requests
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.propagate import inject
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Status, StatusCode, Tracer

from tests.live.prompts import Prompt, Team
from tests.live.service import LiveService
from tests.waiting import wait_until

STAGES = [{"weight": 50, "min_duration_minutes": 60, "min_requests": 0}]
USERS = [f"u-{number}" for number in range(12)]
USAGE = {"gen_ai.usage.input_tokens": 1000, "gen_ai.usage.output_tokens": 500}
MODEL = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-4o-mini"}


@pytest.fixture(scope="module")
def team(live_service: LiveService) -> Team:
    return Team(live_service, "outcomes")


@pytest.fixture
def kept() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def tracer(kept: InMemorySpanExporter) -> Iterator[Tracer]:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    yield provider.get_tracer("shop")
    provider.shutdown()


def asked(team: Team, prompt: Prompt, user: str) -> requests.Response:
    return requests.get(
        f"{team.service.base_url}/api/llm/prompts/{prompt.name}",
        params={"user_id": user},
        headers={"Authorization": f"Bearer {team.api_key}"},
        timeout=30,
    )


def fetch(team: Team, prompt: Prompt, user: str) -> dict[str, Any]:
    answer = asked(team, prompt, user)
    assert answer.status_code == 200, answer.text
    fetched: dict[str, Any] = answer.json()
    return fetched


def fetch_arm(team: Team, prompt: Prompt, user: str) -> dict[str, Any]:
    def arm() -> dict[str, Any] | None:
        answer = asked(team, prompt, user)
        return answer.json() if answer.status_code == 200 and answer.json()["rollout"] else None

    return wait_until(arm, what="the rollout")


def fetch_by(client: openai.OpenAI, team: Team, prompt: Prompt, user: str) -> dict[str, Any]:
    """Returns the prompt once the worker that the client is connected to knows of it and of the rollout. Another worker
    may learn of it later."""
    address = f"{team.service.base_url}/api/llm/prompts/{prompt.name}"

    def arm() -> dict[str, Any] | None:
        try:
            answer = client.get(address, cast_to=httpx2.Response, options={"params": {"user_id": user}})
        except openai.NotFoundError:
            return None
        found: dict[str, Any] = answer.json()
        return found if found["rollout"] else None

    return wait_until(arm, what="the rollout")


def _read(team: Team, path: str, **parameters: str) -> dict[str, Any]:
    answer = requests.get(
        f"{team.service.base_url}/api/{path}",
        params=parameters,
        headers={"Authorization": f"Bearer {team.api_key}", "X-Project-Id": team.project_id},
        timeout=30,
    )
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


@contextmanager
def shipping_held(service: LiveService) -> Iterator[None]:
    pid = wait_until(lambda: service.pid("shipper"), what="the shipper")
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def send(team: Team, spans: tuple[ReadableSpan, ...]) -> None:
    exporter = OTLPSpanExporter(
        endpoint=f"{team.service.base_url}/api/otlp/v1/traces",
        headers={"Authorization": f"Bearer {team.api_key}"},
    )
    assert exporter.export(spans) is SpanExportResult.SUCCESS


def test_spans__of_calls_that_pass_no_gateway__count_once_in_their_arm(
    team: Team, tracer: Tracer, kept: InMemorySpanExporter
) -> None:
    prompt = team.prompt("own-calls", {"system_prompt": "Old."}, {"system_prompt": "New."})
    rollout = prompt.rollout(allocation_type="user_sticky", stages=STAGES)
    arms: dict[str, int] = {"target": 0, "baseline": 0}
    failed = dict(arms)
    for number, user in enumerate(USERS):
        fetched = fetch_arm(team, prompt, user)
        arm = fetched["rollout"]["arm"]
        arms[arm] += 1
        with tracer.start_as_current_span("chat gpt-4o-mini", attributes={**fetched["attributes"], **MODEL}) as span:
            if number % 4 == 0:
                failed[arm] += 1
                span.set_status(Status(StatusCode.ERROR))
            else:
                span.set_attributes(USAGE)
    spans = kept.get_finished_spans()
    send(team, spans)
    # What is sent again counts no second time.
    send(team, spans[:5])

    def measured() -> dict[str, Any] | None:
        found = team.call("GET", f"rollouts/{rollout.id}/metrics")
        return found if sum(found[arm]["request_count"] for arm in arms) >= len(USERS) else None

    metrics = wait_until(measured, what="the outcomes of the spans")
    assert set(arms.values()) & {0} == set()
    for arm, count in arms.items():
        assert metrics[arm]["request_count"] == count
        assert metrics[arm]["error_count"] == failed[arm]
        assert metrics[arm]["unpriced_request_count"] == 0
    [row] = _read(team, "llm/requests", rollout_id=rollout.id, limit="1")["results"]
    assert (row["source"], row["model"], row["provider"]) == ("telemetry", "gpt-4o-mini", "openai")


def test_spans__around_a_request_of_the_gateway__are_counted_there(
    team: Team, tracer: Tracer, kept: InMemorySpanExporter
) -> None:
    prompt = team.prompt("by-gateway", {"system_prompt": "Old."}, {"system_prompt": "New."})
    rollout = prompt.rollout(allocation_type="user_sticky", stages=STAGES)
    headers = {"x-svc-prompt-config": prompt.name, "x-svc-user-id": "u-1", "x-svc-session-id": "by-gateway"}
    with team.client() as client:
        fetched = fetch_by(client, team, prompt, "u-1")
        with tracer.start_as_current_span("chat", attributes={**fetched["attributes"], **MODEL}):
            inject(headers)
            client.chat.completions.create(
                model="sandbox/echo", messages=[{"role": "user", "content": "hi"}], extra_headers=headers
            )

    def counted() -> int:
        found = team.call("GET", f"rollouts/{rollout.id}/metrics")
        return sum(found[arm]["request_count"] for arm in ("target", "baseline"))

    wait_until(lambda: counted() == 1, what="the gateway's own record")
    # The gateway's span, by which the application's is recognised, is stored after the record.
    telemetry = f"projects/{team.project_id}/llm/sessions/by-gateway/telemetry"
    wait_until(lambda: _read(team, telemetry)["spans"], what="the gateway's own span")
    send(team, kept.get_finished_spans())
    # A span that counts is sent after it: once it has been counted, the one before it would have been, too.
    with tracer.start_as_current_span("chat", attributes={**fetched["attributes"], **MODEL}):
        pass
    send(team, kept.get_finished_spans()[1:])
    wait_until(lambda: counted() >= 2, what="the span of a call of its own")

    assert counted() == 2


def test_span__that_comes_before_the_record_of_the_gateway_is_stored__is_counted_there(
    team: Team, tracer: Tracer, kept: InMemorySpanExporter
) -> None:
    prompt = team.prompt("early-span", {"system_prompt": "Old."}, {"system_prompt": "New."})
    rollout = prompt.rollout(allocation_type="user_sticky", stages=STAGES)
    headers = {"x-svc-prompt-config": prompt.name, "x-svc-user-id": "u-1", "x-svc-session-id": "early-span"}
    with shipping_held(team.service), team.client() as client:
        fetched = fetch_by(client, team, prompt, "u-1")
        with tracer.start_as_current_span("chat", attributes={**fetched["attributes"], **MODEL}):
            inject(headers)
            client.chat.completions.create(
                model="sandbox/echo", messages=[{"role": "user", "content": "hi"}], extra_headers=headers
            )
        # A span of a call that passed no gateway is sent with it, so that its record says when both have been seen.
        with tracer.start_as_current_span("chat", attributes={**fetched["attributes"], **MODEL}):
            pass
        send(team, kept.get_finished_spans())

    def stored() -> list[str]:
        rows = _read(team, "llm/requests", rollout_id=rollout.id, limit="10")["results"]
        return sorted(row["source"] for row in rows)

    wait_until(lambda: {"gateway", "telemetry"} <= set(stored()), what="the records of both calls")
    assert stored() == ["gateway", "telemetry"]
