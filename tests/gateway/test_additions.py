"""The parameters and headers that an integration adds to requests, through a running gateway: what providers and the
cache see of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.fakes.dialects.registry import FAKES
from tests.fakes.dialects.server import DialectServer, fails
from tests.fakes.dialects.story import Story
from tests.fakes.scripted import Script
from tests.gateway.cache.test_cache import ASK, status_of, wait_until_stored
from tests.gateway.service import GatewayService
from tests.gateway.stage import Stage, integration_of, model_of
from tests.gateway.wire import body, read_stream

FILES_BETA = "files-api-2025-04-14"
HEADER = "canary-header-value"
FINE = Story(text="Fine.")
# The list has one provider of each dialect.
DIALECTS = ["openai", "azure_openai", "anthropic", "google", "bedrock", "mistral", "cohere", "groq", "moonshot"]
Made = Callable[..., Stage]


@pytest.fixture
def made(service: GatewayService) -> Iterator[Made]:
    """Makes a project with the named providers and these additions."""
    with DialectServer() as server:

        def make(*providers: str, **additions: Any) -> Stage:
            rows = [{**integration_of(FAKES[name], server.base_url(name)), **additions} for name in providers]
            return Stage(service.new_project(integrations=rows), server)

        yield make


def fields(script: Script) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(script.received[-1].body)
    return decoded


def test_every_dialect__parameters_and_headers__reach_the_provider(made: Made) -> None:
    stage = made(
        *DIALECTS,
        default_parameters={"max_tokens": 77},
        forced_parameters={"stop": ["END"], "seed": None},
        extra_headers={"x-team": HEADER},
        forward_headers=["x-source"],
    )
    for provider in DIALECTS:
        for stream in (False, True):
            script = stage.play(provider, FINE)
            sent = body(model=model_of(provider), stop="CLIENT", seed=7, stream=stream)
            response = stage.gateway.post(sent, headers={"x-source": "batch", "x-other": "no"})
            assert response.status_code == 200, response.content
            assert "Fine." in (read_stream(response.content).text if stream else response.text)
            (received,) = stage.requests_of(provider)
            assert (received.max_tokens, received.stop) == (77, ("END",)), provider
            headers = script.received[-1].headers
            assert (headers["x-team"], headers["x-source"]) == (HEADER, "batch"), provider
            assert "x-other" not in headers
            assert "seed" not in script.received[-1].body.decode()
            assert "seed" not in response.headers.get("x-svc-warning", "")


def test_client__says_it_itself__default_gives_way(made: Made) -> None:
    stage = made("openai", default_parameters={"temperature": 0.2, "max_tokens": 50})
    script = stage.play("openai", FINE)
    stage.gateway.post(body(model="openai/gpt-4o-mini", temperature=0.9, max_completion_tokens=5))
    assert {name: fields(script).get(name) for name in ("temperature", "max_tokens", "max_completion_tokens")} == {
        "temperature": 0.9,
        "max_tokens": None,
        "max_completion_tokens": 5,
    }


def test_claude__largest_output__as_the_catalogs_list_it_with_and_without_additions(made: Made) -> None:
    for additions in ({}, {"default_parameters": {"temperature": 1}}):
        stage = made("anthropic", **additions)
        script = stage.play("anthropic", FINE)
        stage.gateway.post(body(model="anthropic/claude-sonnet-4-5", max_tokens=100_000))
        assert fields(script)["max_tokens"] == 64_000


def test_no_additions__openai__the_clients_bytes_and_no_header_of_theirs(made: Made) -> None:
    stage = made("openai")
    script = stage.play("openai", FINE)
    sent = b'{ "model":"gpt-4o-mini",  "messages":[{"role":"user","content":"Hi"}], "odd": 1e2 }'
    stage.gateway.post(sent, headers={"anthropic-beta": FILES_BETA, "cookie": "c=1", "x-api-key": "k"})
    (received,) = script.received
    assert received.body == sent
    assert not received.headers.keys() & {"anthropic-beta", "cookie", "x-api-key", "x-project-id"}


def test_client_headers__of_a_vendor__go_to_that_vendor_alone(made: Made) -> None:
    stage = made("openai", "anthropic", "groq")
    sent = {"anthropic-beta": "context-1m-2025-08-07", "OpenAI-Beta": "assistants=v2"}
    scripts = {name: stage.play(name, FINE) for name in ("openai", "anthropic", "groq")}
    for provider in scripts:
        assert stage.gateway.post(body(model=model_of(provider)), headers=sent).status_code == 200
    headers = {name: set(script.received[-1].headers) for name, script in scripts.items()}
    seen = {name: found & {"anthropic-beta", "openai-beta"} for name, found in headers.items()}
    assert seen == {"openai": {"openai-beta"}, "anthropic": {"anthropic-beta"}, "groq": set()}
    assert scripts["anthropic"].received[-1].headers["anthropic-beta"] == "context-1m-2025-08-07"


def test_fallback__each_provider__gets_its_own_additions(made: Made, service: GatewayService) -> None:
    stage = made("openai", "groq")
    rows: dict[str, dict[str, Any]] = {
        "openai": {"forced_parameters": {"verbosity": "low"}},
        "groq": {"forced_parameters": {"own_switch": True}},
    }
    for provider, additions in rows.items():
        answer = stage.gateway.manage("PUT", f"integrations/{provider}", additions)
        assert answer.status_code == 200, answer.content
    service.set_routing(stage.gateway.project_id, fallback_order=["openai", "groq"], retry_enabled=False)

    def served() -> tuple[Script, Script]:
        first, second = stage.play("openai", fails(FAKES["openai"], 500, "down")), stage.play("groq", FINE)
        stage.gateway.post(body(model="gpt-4o-mini"))
        return first, second

    def settled(scripts: tuple[Script, Script]) -> bool:
        return all(script.received for script in scripts) and fields(scripts[1]).get("own_switch") is True

    first, second = service.until(served, settled)
    assert (fields(first)["verbosity"], fields(second)["own_switch"]) == ("low", True)
    assert "own_switch" not in fields(first)
    assert "verbosity" not in fields(second)


def test_error_that_repeats_a_header__client__never_sees_its_value(made: Made) -> None:
    stage = made("openai", extra_headers={"x-key": HEADER})
    stage.play("openai", fails(FAKES["openai"], 400, f"unknown value {HEADER}"))
    response = stage.gateway.post(body(model="openai/gpt-4o-mini"))
    assert response.status_code == 400
    assert HEADER not in response.text + str(response.headers)
    assert HEADER not in stage.gateway.service.log.read_text(errors="replace")


def test_cache__what_the_integration_or_the_clients_header_changes__is_another_answer(made: Made) -> None:
    stage = made("anthropic")
    script = stage.play("anthropic", FINE, FINE, FINE)
    sent = body(model=model_of("anthropic"))
    statuses = [
        status_of(stage.gateway.post(sent, headers={**ASK, **more}))
        for more in ({"anthropic-beta": FILES_BETA}, {"anthropic-beta": "skills-2025-10-02"}, {})
    ]
    assert statuses == [(200, "miss")] * 3
    wait_until_stored(stage.gateway, 3)
    assert status_of(stage.gateway.post(sent, headers={**ASK, "anthropic-beta": FILES_BETA})) == (200, "hit")
    assert status_of(stage.gateway.post(sent, headers={**ASK, "openai-beta": "a-1"})) == (200, "hit")
    assert len(script.received) == 3


def test_cache__changed_parameters_and_headers__no_old_answer(made: Made, service: GatewayService) -> None:
    stage = made("openai")
    sent, keep = body(model="openai/gpt-4o-mini"), {"cache-control": "max-age=60"}
    stage.play("openai", *[FINE] * 200)
    stage.gateway.post(sent, headers=keep)
    wait_until_stored(stage.gateway)
    steps: list[dict[str, Any]] = [{"default_parameters": {"top_p": 0.5}}, {"extra_headers": {"x-a": "1"}}]
    for count, changes in enumerate(steps, start=2):
        stage.gateway.manage("PUT", "integrations/openai", changes)
        answer = service.until(
            lambda: stage.gateway.post(sent, headers=keep), lambda found: found.headers["x-svc-cache"] == "miss"
        )
        assert status_of(answer) == (200, "miss")
        wait_until_stored(stage.gateway, count)
        assert status_of(stage.gateway.post(sent, headers=keep)) == (200, "hit")
