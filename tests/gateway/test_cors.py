"""Requests of web pages: what a browser lets a page of an allowed origin do, and that nothing is allowed by default."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest

from tests.fakes.scripted import ScriptedServer, answer
from tests.gateway.conftest import LONG_TIMEOUTS, assert_log_is_clean
from tests.gateway.service import Gateway, GatewayService
from tests.gateway.wire import ENDPOINT, body

APP, LOCAL, OTHER = "https://app.example.com", "http://localhost:5173", "https://evil.example.com"
REQUESTED_HEADERS = "authorization, content-type, x-stainless-lang, x-svc-var-name"


@pytest.fixture(scope="module", params=[f"{APP}, {LOCAL}", "*"], ids=["named", "all"])
def opened(request: pytest.FixtureRequest, upstream: ScriptedServer) -> Iterator[Gateway]:
    """A project of a service that lets web pages call it."""
    upstream.play("cors", answer())
    settings = {**LONG_TIMEOUTS, "CORS_ALLOWED_ORIGINS": request.param}
    with GatewayService(workers=1, settings=settings) as service:
        yield service.new_project(
            base_urls={"openai": upstream.base_url("cors")},
            routing={"rate_limit_enabled": True, "rate_limit_rpm": 1000},
        )
        assert_log_is_clean(service)


def preflight(
    gateway: Gateway, origin: str, path: str = ENDPOINT, *, names: str = REQUESTED_HEADERS
) -> httpx2.Response:
    headers = {"origin": origin, "access-control-request-method": "POST", "access-control-request-headers": names}
    return gateway.client.request("OPTIONS", path, headers=headers)


def permissions(response: httpx2.Response) -> dict[str, str]:
    return {name: value for name, value in response.headers.items() if name.startswith("access-control-")}


@pytest.mark.parametrize("origin", [APP, LOCAL])
@pytest.mark.parametrize("path", [ENDPOINT, "/api/gateway/v1/models", "/api/gateway/v1/messages"])
def test_preflight__of_an_allowed_origin__allows_the_request(opened: Gateway, origin: str, path: str) -> None:
    response = preflight(opened, origin, path)

    assert response.status_code == 204
    allowed = permissions(response)
    assert allowed["access-control-allow-origin"] == origin
    assert allowed["access-control-allow-headers"] == REQUESTED_HEADERS
    assert "POST" in allowed["access-control-allow-methods"]
    assert "access-control-allow-credentials" not in allowed
    assert "origin" in response.headers["vary"]


@pytest.mark.parametrize("names", ["a b", "a,,b", "é", "x" * 5000])
def test_preflight__with_names_that_are_none__allows_no_header(opened: Gateway, names: str) -> None:
    headers = [(b"origin", APP.encode()), (b"access-control-request-method", b"POST")]
    headers.append((b"access-control-request-headers", names.encode()))

    response = opened.client.request("OPTIONS", ENDPOINT, headers=headers)

    assert "access-control-allow-headers" not in response.headers


@pytest.mark.parametrize("stream", [False, True])
def test_answer__for_an_allowed_origin__can_be_read_with_its_headers(opened: Gateway, stream: bool) -> None:
    response = opened.post(body(stream=stream), headers={"origin": APP})

    assert response.status_code == 200
    allowed = permissions(response)
    exposed = set(allowed["access-control-expose-headers"].split(", "))
    assert allowed["access-control-allow-origin"] == APP
    own = {name for name in response.headers if name.startswith(("x-svc-", "x-ratelimit-", "x-request-id"))}
    assert own
    assert own <= exposed


def test_failure__for_an_allowed_origin__can_be_read(opened: Gateway) -> None:
    refused = opened.client.get("/api/gateway/v1/models", headers={"origin": APP})
    unknown = opened.client.get("/api/gateway/v1/nothing", headers={"origin": APP})

    assert (refused.status_code, unknown.status_code) == (401, 404)
    for response in (refused, unknown):
        assert permissions(response)["access-control-allow-origin"] == APP


def test_request__without_an_origin__has_no_such_header(opened: Gateway) -> None:
    assert permissions(opened.post(body())) == {}


def test_management__of_an_allowed_origin__stays_closed(opened: Gateway) -> None:
    response = opened.client.get(
        "/api/llm/settings", headers={**opened.headers, "X-Project-Id": opened.project_id, "origin": APP}
    )

    assert permissions(response) == {}
    assert permissions(preflight(opened, APP, "/api/llm/settings")) == {}


def test_feedback__of_an_allowed_origin__can_be_given_with_a_key_for_browsers(opened: Gateway) -> None:
    path = "/api/llm/sessions/a%2Fb/feedback"
    token = opened.manage("POST", "sessions/a%2Fb/feedback-token", {}).json()["token"]
    key = opened.service.make_key(opened.project_id, scopes=["feedback:write"])
    headers = {"authorization": f"Bearer {key}", "x-project-id": opened.project_id, "origin": APP}

    allowed = preflight(opened, APP, path, names="authorization, x-svc-feedback-token")
    given = opened.client.post(path, json={"project_id": opened.project_id, "score": 5}, headers=headers)
    tokened = {**headers, "x-svc-feedback-token": token}
    accepted = opened.client.post(path, json={"project_id": opened.project_id, "score": 5}, headers=tokened)

    assert permissions(allowed)["access-control-allow-methods"] == "POST, OPTIONS"
    assert (given.status_code, accepted.status_code) == (403, 201)
    for answered in (allowed, given, accepted):
        assert permissions(answered)["access-control-allow-origin"] == APP
    assert permissions(opened.client.get(path, headers=headers)) == {}
    assert permissions(preflight(opened, APP, f"{path}-token")) == {}


def test_request__of_another_origin__is_served_and_cannot_be_read(opened: Gateway) -> None:
    response = opened.post(body(), headers={"origin": OTHER})
    names = {"access-control-allow-origin"} if "*" in opened.service.environment["CORS_ALLOWED_ORIGINS"] else set()

    assert response.status_code == 200
    assert permissions(response).keys() & {"access-control-allow-origin"} == names
    assert permissions(preflight(opened, OTHER)).keys() & {"access-control-allow-origin"} == names


def test_default__no_origin_is_allowed(gateway: Gateway) -> None:
    assert preflight(gateway, APP).status_code == 405
    assert permissions(preflight(gateway, APP)) == {}
    assert permissions(gateway.post(body(), headers={"origin": APP})) == {}
