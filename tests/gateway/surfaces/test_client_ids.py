"""The ids that clients of each protocol send in headers: the session of a coding agent, and an id of the request."""

from __future__ import annotations

from collections.abc import Mapping

import httpx2
import openai
import pytest

from tests.gateway.conftest import Routed
from tests.gateway.surfaces.ways import EVERY_WAY, WHOLE_AND_STREAMED, Way
from tests.gateway.wire import body
from tests.tables.cases import tabled

SESSION = "0199c2f4-6a7b-7cc1-8d1e-1f5a5b9a0c11"


def answer_and_session(
    routed: Routed, way: Way, headers: Mapping[str, str], *, stream: bool = False
) -> tuple[httpx2.Response, str]:
    """Returns the answer, and the session in its record."""
    gateway, _ = routed(None, **{way.provider: [way.answer(text="Hello")]})
    response = way.ask(gateway, way.body(stream=stream), headers=headers)
    assert response.status_code == 200, response.text
    return response, gateway.record(response).session_id


@tabled
def test_session__in_the_header_of_an_agent__is_that_of_the_record(routed: Routed, header: str) -> None:
    assert answer_and_session(routed, Way("responses"), {header: SESSION})[1] == SESSION


@EVERY_WAY
def test_session__in_our_header__counts_before_that_of_an_agent(routed: Routed, way: Way) -> None:
    headers = {"x-claude-code-session-id": SESSION, "x-svc-session-id": "ours", "session-id": "codex"}

    assert answer_and_session(routed, way, headers)[1] == "ours"


def test_session__of_two_headers__is_the_more_specific_one(routed: Routed) -> None:
    headers = {"x-session-id": "general", "x-claude-code-session-id": SESSION, "session_id": "codex"}

    assert answer_and_session(routed, Way("messages"), headers)[1] == SESSION


@pytest.mark.parametrize("value", ["", "a b", "x" * 201, "ä"], ids=["empty", "space", "long", "letter"])
def test_session__that_is_no_id__is_no_session(routed: Routed, value: str) -> None:
    gateway, _ = routed(None, groq=[Way("chat").answer(text="Hello")])
    raw = [(b"authorization", f"Bearer {gateway.key}".encode()), (b"x-session-id", value.encode())]

    response = gateway.client.post("/api/gateway/v1/chat/completions", json=body(model="groq/llama"), headers=raw)

    assert response.status_code == 200, response.text
    assert gateway.record(response).session_id == ""


@EVERY_WAY
@WHOLE_AND_STREAMED
def test_request_id__of_the_client__is_kept_beside_ours(routed: Routed, way: Way, stream: bool) -> None:
    gateway, _ = routed(None, **{way.provider: [way.answer(text="Hello")]})

    response = way.ask(gateway, way.body(stream=stream), headers={"x-request-id": "mine/1"})

    assert response.headers["x-client-request-id"] == "mine/1"
    assert response.headers["x-request-id"] != "mine/1"
    assert gateway.record(response).attributes["client_request_id"] == "mine/1"


@pytest.mark.parametrize("value", ["a b", "x" * 201])
def test_request_id__that_is_no_id__is_ignored(routed: Routed, value: str) -> None:
    gateway, _ = routed(None, groq=[Way("chat").answer(text="Hello")])

    response = Way("chat").ask(gateway, headers={"x-request-id": value})

    assert "x-client-request-id" not in response.headers
    assert gateway.record(response).attributes == {}


def test_request_id__of_a_request_that_fails__is_sent_back_too(routed: Routed) -> None:
    gateway, _ = routed(None, groq=[Way("chat").answer(text="Hello")])

    with gateway.openai() as client:
        with pytest.raises(openai.AuthenticationError) as refused:
            client.with_options(api_key="svc_wrong").chat.completions.create(
                model="groq/llama", messages=[{"role": "user", "content": "Hi"}], extra_headers={"x-request-id": "m-2"}
            )
        with pytest.raises(openai.NotFoundError) as unknown:
            client.chat.completions.create(
                model="nothing", messages=[{"role": "user", "content": "Hi"}], extra_headers={"x-request-id": "m-3"}
            )

    assert refused.value.response.headers["x-client-request-id"] == "m-2"
    assert unknown.value.response.headers["x-client-request-id"] == "m-3"
    record = gateway.record(unknown.value.response.headers["x-request-id"])
    assert record.attributes["client_request_id"] == "m-3"
