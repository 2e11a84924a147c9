from __future__ import annotations

import json
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest

from tests.agent.chat.conftest import Played
from tests.agent.chat.playing import PATH, agent, chat, headers_of, messages, post, read_events, says
from tests.gateway.service import Gateway
from tests.tables.cases import tabled


def assert_refused(response: httpx2.Response, status: int, code: str) -> dict[str, Any]:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    assert response.headers["x-request-id"]
    error: dict[str, Any] = response.json()["error"]
    assert set(error) - {"details"} == {"message", "type", "code"}
    assert error["code"] == code, error
    return error


def conversations(gateway: Gateway) -> int:
    return int(agent(gateway, "GET", "conversations").json()["count"])


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({}, "missing_field", "message"),
        ({"message": ""}, "invalid_value", "message"),
        ({"message": "   "}, "invalid_value", "message"),
        ({"message": None}, "invalid_value", "message"),
        ({"message": 5}, "invalid_value", "message"),
        ({"message": ["hi"]}, "invalid_value", "message"),
        ({"message": "x" * 32_001}, "invalid_value", "message"),
        ({"message": "hi", "conversation_id": "no"}, "invalid_value", "conversation_id"),
        ({"message": "hi", "conversation_id": 5}, "invalid_value", "conversation_id"),
        ({"message": "hi", "model": "gpt-4o"}, "invalid_value", "model"),
        ({"message": "hi", "project_id": "no"}, "invalid_value", "project_id"),
        ({"message": "hi", "page_context": "sessions"}, "invalid_value", "page_context"),
        ({"message": "hi", "page_context": {"page": 5}}, "invalid_value", "page_context.page"),
        ({"message": "hi", "page_context": {"page": "x" * 501}}, "invalid_value", "page_context.page"),
        ({"message": "hi", "page_context": {"data": []}}, "invalid_value", "page_context.data"),
        ({"message": "hi", "page_context": {"data": {"a": "x" * 33_000}}}, "invalid_value", "page_context.data"),
        ({"message": "hi", "page_context": {"else": 1}}, "invalid_value", "page_context.else"),
        ([], "invalid_value", "non_field_errors"),
        ("text", "invalid_value", "non_field_errors"),
    ],
)
def test_chat__bad_body__is_400_that_names_the_field(played: Played, body: Any, code: str, field: str) -> None:
    gateway, script = played(says("Hello."))

    error = assert_refused(post(gateway, body), 400, code)

    assert field in error["details"]
    assert conversations(gateway) == 0
    assert script.received == []


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff", b'{"message": "a\\u0000"}', b'{"message": "\\ud800"}', b'{"message": NaN}', b"[" * 100_000],
    ids=["empty", "open", "latin", "null", "surrogate", "nan", "deep"],
)
def test_chat__body_is_no_json__is_400(played: Played, content: bytes) -> None:
    gateway, _ = played(says("Hello."))
    headers = {**headers_of(gateway), "content-type": "application/json"}

    response = gateway.service.client.post(gateway.service.base_url() + PATH, content=content, headers=headers)

    assert response.status_code == 400, response.text
    assert response.json()["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    "data",
    ['{"a":' * 21 + "1" + "}" * 21, '{"a": 1e999}', '{"a": ["\\u0000"]}'],
    ids=["deep", "infinite", "null"],
)
def test_chat__page_that_cannot_be_stored__is_400(played: Played, data: str) -> None:
    gateway, _ = played(says("Hello."))
    content = f'{{"message": "hi", "page_context": {{"data": {data}}}}}'.encode()
    headers = {**headers_of(gateway), "content-type": "application/json"}

    response = gateway.service.client.post(gateway.service.base_url() + PATH, content=content, headers=headers)

    assert response.status_code == 400, response.text


def test_chat__as_long_and_deep_as_allowed__is_answered(played: Played) -> None:
    gateway, _ = played(says("Hello."))
    data: dict[str, Any] = {"n": 1.5, "big": 10**30}
    for _ in range(17):
        data = {"a": data}

    reply = chat(gateway, "x" * 32_000, page_context={"page": "p" * 500, "data": data})

    assert messages(gateway, reply.conversation_id)[0]["page_context"]["data"] == data


def test_chat__in_pieces_of_unknown_length__is_read_whole(played: Played) -> None:
    gateway, _ = played(says("Hello."))
    headers = {**headers_of(gateway), "content-type": "application/json"}
    content = json.dumps({"message": "hi"}).encode()

    response = gateway.service.client.post(
        gateway.service.base_url() + PATH, content=iter([content[:5], content[5:]]), headers=headers
    )

    assert read_events(response.content).text == "Hello.", response.content


@tabled
def test_chat__bad_header__is_refused(played: Played, changed: dict[str, str | None], status: int, code: str) -> None:
    gateway, script = played(says("Hello."))
    given = {**headers_of(gateway), "content-type": "application/json", **changed}
    headers = {name: value for name, value in given.items() if value is not None}

    response = gateway.service.client.post(
        gateway.service.base_url() + PATH, content=b'{"message": "hi"}', headers=headers
    )

    assert_refused(response, status, code)
    assert script.received == []
    if status == 401:
        assert response.headers["www-authenticate"] == "Bearer"


def test_chat__with_a_key__is_answered_by_any_name(played: Played) -> None:
    gateway, _ = played(says("Hello."))

    response = post(gateway, {"message": "hi"}, headers={**headers_of(gateway), "host": "gateway.internal"})

    assert read_events(response.content).text == "Hello.", response.content


@pytest.mark.parametrize("accept", ["text/event-stream", "*/*", "application/json", "text/event-stream, */*"])
def test_chat__whatever_a_client_of_streams_accepts__is_answered(played: Played, accept: str) -> None:
    gateway, _ = played(says("Hello."))

    response = post(gateway, {"message": "hi"}, headers={**headers_of(gateway), "accept": accept})

    assert read_events(response.content).text == "Hello.", response.content


def test_chat__key_without_manage__is_403(played: Played) -> None:
    gateway, _ = played(says("Hello."))
    key = gateway.service.make_key(gateway.project_id, scopes=["gateway"])

    assert_refused(post(gateway, {"message": "hi"}, headers=headers_of(gateway, key)), 403, "scope_missing")


def test_chat__project_of_the_body_differs__is_403(played: Played) -> None:
    gateway, _ = played(says("Hello."))

    assert_refused(post(gateway, {"message": "hi", "project_id": str(uuid.uuid4())}), 403, "project_mismatch")


def test_chat__agent_switched_off__is_403(played: Played) -> None:
    gateway, script = played(says("Hello."), agent_enabled=False)

    assert_refused(post(gateway, {"message": "hi"}), 403, "agent_disabled")
    assert script.received == []


def test_chat__no_model__is_400_that_says_what_to_set(played: Played) -> None:
    gateway, _ = played(says("Hello."), agent_model="")

    error = assert_refused(post(gateway, {"message": "hi"}), 400, "no_agent_model")

    assert "agent_model" in error["message"]
    assert conversations(gateway) == 0


@pytest.mark.parametrize("foreign", [False, True])
def test_chat__unknown_or_foreign_conversation__is_404(played: Played, foreign: bool) -> None:
    gateway, script = played(says("Hello."))
    other, _ = played(says("Hello."))
    named = chat(other).conversation_id if foreign else str(uuid.uuid4())

    assert_refused(post(gateway, {"message": "hi", "conversation_id": named}), 404, "conversation_not_found")

    assert script.received == []
    if foreign:
        assert len(messages(other, named)) == 2


def test_chat__deleted_conversation__is_404(played: Played) -> None:
    gateway, _ = played(says("Hello."))
    named = chat(gateway).conversation_id
    assert agent(gateway, "DELETE", f"conversations/{named}").status_code == 204

    assert_refused(post(gateway, {"message": "hi", "conversation_id": named}), 404, "conversation_not_found")


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
def test_chat__other_method__is_405(played: Played, method: str) -> None:
    gateway, _ = played(says("Hello."))

    response = agent(gateway, method, "chat")

    assert_refused(response, 405, "method_not_allowed")
    assert response.headers["allow"] == "POST"


def test_chat__body_too_large__is_413(played: Played) -> None:
    gateway, _ = played(says("Hello."))

    response = post(gateway, {"message": "x" * (8 * 1024 * 1024)})

    assert_refused(response, 413, "body_too_large")


def test_chat__body_never_comes__is_408(played: Played) -> None:
    gateway, _ = played(says("Hello."))
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=60) as connection:
        lines = [f"POST {PATH} HTTP/1.1", "host: localhost", "content-type: application/json", "content-length: 100"]
        lines += [f"{name}: {value}" for name, value in headers_of(gateway).items()]
        connection.sendall("\r\n".join([*lines, "", '{"message"']).encode())
        answer = b""
        while piece := connection.recv(65536):
            answer += piece

    assert answer.startswith(b"HTTP/1.1 408"), answer
    assert b"request_timeout" in answer


@contextmanager
def signed_in(gateway: Gateway, name: str, *, is_staff: bool = True) -> Iterator[httpx2.Client]:
    code = f"from django.contrib.auth.models import User; User.objects.create_superuser({name!r}, password='pw-{name}')"
    gateway.service.manage("shell", "-c", code)
    with httpx2.Client(base_url=gateway.service.base_url(), timeout=60) as client:
        client.get("/admin/login/")
        form = {"username": name, "password": f"pw-{name}", "csrfmiddlewaretoken": client.cookies["csrftoken"]}
        answer = client.post("/admin/login/", data=form)
        assert answer.status_code == 302, answer.text
        if not is_staff:
            lost = f"User.objects.filter(username={name!r}).update(is_staff=False, is_superuser=False)"
            gateway.service.manage("shell", "-c", f"from django.contrib.auth.models import User; {lost}")
        yield client


def test_chat__staff_session__needs_the_token_and_is_answered_with_it(played: Played) -> None:
    gateway, _ = played(says("Hello."))
    with signed_in(gateway, "ada") as client:
        project = {"x-project-id": gateway.project_id}

        assert_refused(client.post(PATH, json={"message": "hi"}, headers=project), 403, "csrf_failed")
        token = {"x-csrftoken": client.cookies["csrftoken"]}
        assert_refused(
            client.post(PATH, json={"message": "hi"}, headers={**token, "x-project-id": str(uuid.uuid4())}),
            401,
            "invalid_project",
        )
        answer = client.post(PATH, json={"message": "hi"}, headers={**project, **token})

    reply = read_events(answer.content)
    assert reply.text == "Hello."
    (row,) = agent(gateway, "GET", "conversations").json()["results"]
    assert row["created_by"] == "user:ada"
    (assistant,) = [row for row in messages(gateway, reply.conversation_id) if row["role"] == "assistant"]
    assert gateway.record(assistant["request_id"]).attributes["actor"] == "user:ada"


def test_chat__session_of_somebody_who_is_no_staff__opens_nothing(played: Played) -> None:
    gateway, script = played(says("Hello."))
    with signed_in(gateway, "eve", is_staff=False) as client:
        headers = {"x-project-id": gateway.project_id, "x-csrftoken": client.cookies["csrftoken"]}
        response = client.post(PATH, json={"message": "hi"}, headers=headers)

    assert response.status_code in (401, 403), response.text
    assert script.received == []
    assert conversations(gateway) == 0
