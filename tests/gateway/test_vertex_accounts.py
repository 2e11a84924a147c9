"""Vertex AI with a service account, through a running gateway: a token is fetched once and used as bearer."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from tests.fakes.dialects.registry import FAKES
from tests.fakes.dialects.server import DialectServer, answer_with
from tests.fakes.dialects.story import Story
from tests.fakes.upstream import UpstreamServer
from tests.gateway.service import Gateway, GatewayService
from tests.gateway.stage import credentials_row, model_of
from tests.gateway.wire import assert_error
from tests.integrations.test_access_tokens import EMAIL, TokenServer, service_account

VERTEX = "google_vertex"
ASK: dict[str, Any] = {"model": model_of(VERTEX), "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture
def tokens() -> Iterator[TokenServer]:
    answers = TokenServer()
    with UpstreamServer(answers) as running:
        answers.url = f"{running.url}/token"
        yield answers


@pytest.fixture(scope="module")
def vertex() -> Iterator[DialectServer]:
    with DialectServer() as server:
        server.play(VERTEX, answer_with(FAKES[VERTEX], Story(text="Fine.")))
        yield server


@pytest.fixture
def gateway(service: GatewayService, vertex: DialectServer, tokens: TokenServer) -> Gateway:
    vertex.scripts[VERTEX].received.clear()
    credentials = FAKES[VERTEX].credentials(vertex.base_url(VERTEX))
    account = replace(credentials, secret=service_account(tokens.url).secret)
    return service.new_project(integrations=[credentials_row(account)])


@pytest.mark.parametrize("stream", [False, True])
def test_service_account__many_requests__one_token(
    gateway: Gateway, vertex: DialectServer, tokens: TokenServer, stream: bool
) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: gateway.post({**ASK, "stream": stream}), range(8)))

    assert [answer.status_code for answer in answers] == [200] * 8
    assert len(tokens.requests) == 1
    sent = {received.headers["authorization"] for received in vertex.scripts[VERTEX].received}
    assert sent == {"Bearer ya29.token-1"}


def test_service_account__refused_by_google__the_operators_fault_and_no_secret_is_shown(
    gateway: Gateway, vertex: DialectServer, tokens: TokenServer
) -> None:
    tokens.refusal = (400, {"error": "invalid_grant", "error_description": "Invalid JWT Signature."})

    response = gateway.post(ASK)

    message = assert_error(response, 500, "provider_error")
    assert "PRIVATE KEY" not in message
    assert EMAIL not in message
    assert not vertex.scripts[VERTEX].received


def test_service_account__token_server_away__provider_unavailable(
    gateway: Gateway, vertex: DialectServer, tokens: TokenServer
) -> None:
    tokens.refusal = (503, {"error": "backend_error"})

    assert_error(gateway.post(ASK), 503, "provider_unavailable")
    assert not vertex.scripts[VERTEX].received
