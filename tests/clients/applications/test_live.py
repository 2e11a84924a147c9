from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any
from urllib.parse import quote

import pytest

from tests.clients.applications.drivers import DRIVERS, Driver, Refused, later
from tests.factories.analytics import uuid7
from tests.gateway.conftest import LONG_TIMEOUTS
from tests.gateway.service import Gateway, GatewayService
from tests.waiting import TIMEOUT_SECONDS, wait_until

VERSIONS: list[dict[str, Any]] = [
    {"system_prompt": "You help {{ who }}.", "variables": [{"name": "who", "type": "string", "required": True}]},
    {"system_prompt": "Be brief."},
]


def make_project(service: GatewayService) -> Gateway:
    project = service.new_project()
    made = service.seeder.call("make_prompt", project_id=project.project_id, name="support", versions=VERSIONS)
    labelled = project.manage("PUT", f"prompts/configs/{made['config_id']}/labels/staging", {"version_number": 2})
    assert labelled.is_success, labelled.text
    return project


def driver_of(name: str, project: Gateway, *, key: str = "", timeout: float = TIMEOUT_SECONDS) -> Driver:
    return DRIVERS[name](
        {
            "base_url": project.service.base_url(),
            "api_key": key or project.key,
            "project_id": project.project_id,
            "timeout": timeout,
        }
    )


@pytest.fixture(scope="module")
def project(service: GatewayService) -> Gateway:
    return make_project(service)


@pytest.fixture(params=list(DRIVERS))
def language(request: pytest.FixtureRequest, compiled: None) -> str:
    name: str = request.param
    return name


@pytest.fixture
def live(language: str, project: Gateway) -> Iterator[Driver]:
    key = project.service.make_key(project.project_id, scopes=["prompts:read", "feedback:write", "scores:write"])
    with closing(driver_of(language, project, key=key)) as made:
        yield made


def test_prompt__by_name_version_label_and_variables__is_the_service_s(live: Driver) -> None:
    assert live.get()["system_prompt"] == "You help {{ who }}."
    assert live.get(version=2)["messages"] == [{"role": "system", "content": "Be brief."}]
    wait_until(lambda: not isinstance(later(live, label="staging"), Refused), what="the label")
    assert live.get(label="staging")["messages"] == [{"role": "system", "content": "Be brief."}]
    rendered = live.get(variables={"who": "Ann"})
    assert (rendered["system_prompt"], rendered["rendered"], rendered["version_number"]) == ("You help Ann.", True, 1)
    # The second answer is a 304.
    live.advance(400)
    assert live.get()["system_prompt"] == "You help {{ who }}."


def test_prompt__that_there_is_not__is_named(live: Driver) -> None:
    assert live.get("nobody") == Refused("PromptGatewayError", 404, "prompt_config_not_found")
    assert live.get("nobody", fallback="Be patient.")["source"] == "fallback"
    assert live.get(variables={}) == Refused("PromptGatewayError", 422, "missing_variable")


def test_feedback_and_score__are_recorded(live: Driver, project: Gateway, language: str) -> None:
    session, request_id = f"{language}/1", f"request of {language}"
    assert live.call("feedback", session, score=5, text="Good.") is None
    assert live.call("score", request_id, "relevance", 80, reason="Fits.") is None

    (given,) = project.manage("GET", f"sessions/{language}%2F1/feedback").json()["results"]
    assert (given["score"], given["text"]) == (5, "Good.")
    (score,) = project.manage("GET", f"scores?request_id={request_id}").json()["results"]
    assert (score["score_name"], score["score_value"], score["reason"]) == ("relevance", 80, "Fits.")
    assert live.call("feedback", session, score=6) == Refused("PromptGatewayError", 400, "invalid_value")


def test_feedback__key_of_a_browser__with_the_token_of_the_session(
    live: Driver, language: str, project: Gateway
) -> None:
    token = live.call("feedback_token", f"{language} session")
    key = project.service.make_key(project.project_id, scopes=["feedback:write"])
    with closing(driver_of(language, project, key=key)) as browser:
        assert browser.call("feedback", f"{language} session", score=4, token=token) is None
        other = browser.call("feedback", "other session", score=4, token=token)

    assert other == Refused("PromptGatewayError", 403, "feedback_token_invalid")


def test_feedback__on_one_answer__with_a_token_of_it(live: Driver, language: str, project: Gateway) -> None:
    session = f"{language} answers"
    request_id = uuid7(time.time_ns() // 1000)
    assert live.call("feedback", session, score=2, request_id=request_id) is None
    key = project.service.make_key(project.project_id, scopes=["feedback:write"])
    token = live.call("feedback_token", session, request_id=request_id)
    with closing(driver_of(language, project, key=key)) as browser:
        assert browser.call("feedback", session, score=1, request_id=request_id, token=token) is None
        assert browser.call("feedback", session, edited=True, request_id=request_id, token=token) is None
        whole = browser.call("feedback", session, score=1, token=token)

    assert whole == Refused("PromptGatewayError", 403, "feedback_token_invalid")
    given = project.manage("GET", f"sessions/{quote(session)}/feedback?request_id={request_id}").json()["results"]
    assert [(item["score"], item["edited"]) for item in given] == [(None, True), (1, False), (2, False)]
    assert {item["request_id"] for item in given} == {request_id}


def test_service__stopped_for_five_minutes__is_not_noticed(compiled: None) -> None:
    with ExitStack() as drivers:
        with GatewayService(workers=1, settings=LONG_TIMEOUTS) as service:
            project = make_project(service)
            clients = [drivers.enter_context(closing(driver_of(name, project))) for name in DRIVERS]
            kept = [client.get() for client in clients]
            assert [prompt["source"] for prompt in kept] == ["service", "service"]
        for _ in range(60):
            for client, prompt in zip(clients, kept, strict=True):
                client.advance(5)
                assert client.get() == prompt
        for client in clients:
            assert client.get("other", fallback="Be patient.")["source"] == "fallback"
            refused = client.call("feedback", "s", score=5)
            assert isinstance(refused, Refused) and refused.kind == "UnavailableError"


def test_service__held__is_not_noticed_but_by_what_is_new(compiled: None, project: Gateway) -> None:
    with ExitStack() as drivers:
        clients = [drivers.enter_context(closing(driver_of(name, project))) for name in DRIVERS]
        kept = [client.get() for client in clients]
        assert [prompt["source"] for prompt in kept] == ["service", "service"]
        hasty = [drivers.enter_context(closing(driver_of(name, project, timeout=0.3))) for name in DRIVERS]
        with project.service.held():
            for client, prompt in zip(clients, kept, strict=True):
                client.advance(300)
                assert client.get() == prompt
            for client in hasty:
                assert client.get(fallback="Be patient.")["source"] == "fallback"
