from __future__ import annotations

import asyncio
import socket

import httpx2
import pytest
from mcp.shared.exceptions import MCPError

from tests.agent.chat.playing import headers_of
from tests.agent.chat.test_refusals import assert_refused, signed_in
from tests.agent.mcp.speaking import PATH, call, message, send, session
from tests.gateway.service import Gateway, GatewayService
from tests.tables.cases import tabled

LIST = message("tools/list")


@tabled
def test_call__bad_header__is_refused(gateway: Gateway, changed: dict[str, str | None], status: int, code: str) -> None:
    response = send(gateway, LIST, changed)

    assert_refused(response, status, code)
    if status == 401:
        assert response.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("accept", ["application/json", "*/*", "application/json, text/event-stream", None])
def test_call__whatever_a_client_accepts__is_json(gateway: Gateway, accept: str | None) -> None:
    response = send(gateway, LIST, {"accept": accept})

    assert response.headers["content-type"] == "application/json"
    assert response.headers["x-request-id"]
    assert response.json()["result"]["tools"]


def test_call__from_own_page__is_answered(gateway: Gateway) -> None:
    assert send(gateway, LIST, {"origin": gateway.service.base_url()}).status_code == 200


@pytest.mark.parametrize("scope", ["feedback:write", "scores:write", "telemetry:write", "metrics:read"])
def test_call__key_for_neither_tools_nor_prompts__is_403(gateway: Gateway, scope: str) -> None:
    key = gateway.service.make_key(gateway.project_id, scopes=[scope])

    assert_refused(send(gateway, LIST, {"authorization": f"Bearer {key}"}), 403, "scope_missing")


def test_call__key_of_another_project__is_401(gateway: Gateway, service: GatewayService) -> None:
    other = service.new_project()

    assert_refused(send(gateway, LIST, {"authorization": f"Bearer {other.key}"}), 401, "invalid_project")
    assert_refused(send(gateway, LIST, {"x-project-id": other.project_id}), 401, "invalid_project")


def test_call__revoked_key__is_401_at_once(gateway: Gateway) -> None:
    assert send(gateway, LIST).status_code == 200
    gateway.service.revoke_key(gateway.key)

    for port in gateway.service.ports:
        assert_refused(send(gateway, LIST, port=port), 401, "invalid_api_key")


def test_call__disabled_agent__is_403_at_once(gateway: Gateway) -> None:
    assert send(gateway, LIST).status_code == 200
    gateway.service.set_routing(gateway.project_id, agent_enabled=False)

    for port in gateway.service.ports:
        assert_refused(send(gateway, LIST, port=port), 403, "agent_disabled")
        assert_refused(send(gateway, call("get_project"), port=port), 403, "agent_disabled")


async def test_official_client__wrong_key__fails(gateway: Gateway) -> None:
    wrong = {**headers_of(gateway), "authorization": "Bearer svc_unknown"}

    with pytest.RaisesGroup(MCPError, flatten_subgroups=True, allow_unwrapped=True):
        async with session(gateway, headers=wrong):
            pytest.fail("a wrong key opens nothing")


async def test_official_client__key_revoked_in_its_session__reads_nothing_more(gateway: Gateway) -> None:
    with pytest.RaisesGroup(MCPError, flatten_subgroups=True, allow_unwrapped=True):
        async with session(gateway, spread=True) as client:
            assert not (await client.call_tool("get_project", {})).is_error
            await asyncio.to_thread(gateway.service.revoke_key, gateway.key)
            found = await client.call_tool("get_project", {})
            pytest.fail(f"a revoked key read {found}")


async def test_official_client__header_of_another_project__fails(gateway: Gateway, service: GatewayService) -> None:
    other = {**headers_of(gateway), "x-project-id": service.new_project().project_id}

    with pytest.RaisesGroup(MCPError, flatten_subgroups=True, allow_unwrapped=True):
        async with session(gateway, headers=other):
            pytest.fail("a key opens its own project only")


def test_call__session_of_the_admin__is_not_taken(gateway: Gateway) -> None:
    with signed_in(gateway, "grace") as client:
        headers = {"x-project-id": gateway.project_id, "x-csrftoken": client.cookies["csrftoken"]}

        assert_refused(client.post(PATH, json=LIST, headers=headers), 401, "missing_api_key")


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "PATCH", "OPTIONS"])
def test_method__other_than_post__is_405(gateway: Gateway, method: str) -> None:
    url = gateway.service.base_url() + PATH
    headers = {**headers_of(gateway), "accept": "text/event-stream"}

    response = gateway.service.client.request(method, url, headers=headers)

    assert_refused(response, 405, "method_not_allowed")
    assert response.headers["allow"] == "POST"


@pytest.mark.parametrize("version", [None, "2025-06-18", "2026-07-28", "1999-01-01", "x" * 1000])
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff",
        b"[]",
        b"null",
        b"5",
        b'"text"',
        b"[" * 100_000,
        b'{"id": "\\ud800"}',
        b'{"jsonrpc": "1.0"}',
        b"{}",
    ],
    ids=["empty", "open", "latin", "batch", "null", "number", "text", "deep", "surrogate", "one", "nothing"],
)
def test_body__no_message__is_an_error_of_the_protocol(gateway: Gateway, content: bytes, version: str | None) -> None:
    response = send(gateway, content, {"mcp-protocol-version": version})

    assert response.status_code == 400, response.text
    assert response.json()["jsonrpc"] == "2.0"
    assert isinstance(response.json()["error"]["code"], int)
    assert "\n" not in response.json()["error"]["message"] and "pydantic" not in response.text


@tabled
def test_message__that_cannot_be_served__is_an_error_of_the_protocol(
    gateway: Gateway, sent: dict[str, object], code: int
) -> None:
    answer = send(gateway, sent).json()

    assert answer["id"] == 1
    assert answer["error"]["code"] == code


def test_body__too_large__is_413(gateway: Gateway) -> None:
    assert_refused(send(gateway, call("get_session", session_id="x" * 262_144)), 413, "body_too_large")


def test_body__large_and_from_a_stranger__is_refused_unread(gateway: Gateway) -> None:
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=60) as connection:
        lines = [f"POST {PATH} HTTP/1.1", "host: localhost", "content-type: application/json"]
        connection.sendall("\r\n".join([*lines, "content-length: 100000000", "", "{"]).encode())

        assert connection.recv(65536).startswith(b"HTTP/1.1 401")


def test_body__never_comes__is_408(gateway: Gateway) -> None:
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=60) as connection:
        lines = [f"POST {PATH} HTTP/1.1", "host: localhost", "content-type: application/json", "content-length: 100"]
        lines += [f"{name}: {value}" for name, value in headers_of(gateway).items()]
        connection.sendall("\r\n".join([*lines, "", '{"jsonrpc"']).encode())
        answer = b""
        while piece := connection.recv(65536):
            answer += piece

    assert answer.startswith(b"HTTP/1.1 408"), answer
    assert b"request_timeout" in answer


def test_message__in_pieces_of_unknown_length__is_read_whole(gateway: Gateway) -> None:
    headers = {**headers_of(gateway), "content-type": "application/json", "accept": "application/json"}
    content = b'{"jsonrpc": "2.0", "id": 7, "method": "ping"}'

    response = httpx2.post(
        gateway.service.base_url() + PATH, content=iter([content[:9], content[9:]]), headers=headers, timeout=60
    )

    assert response.json() == {"jsonrpc": "2.0", "id": 7, "result": {}}


def test_notification__is_taken_without_an_answer(gateway: Gateway) -> None:
    response = send(gateway, {"jsonrpc": "2.0", "method": "notifications/initialized"})

    assert (response.status_code, response.content) == (202, b"")
    assert response.headers["x-request-id"]
