"""Header values that are no ASCII arrive as the client meant them: UTF-8 of most SDKs, Latin-1 of browsers, Node's
`fetch` (https://fetch.spec.whatwg.org/#headers-class: a ByteString) and Python's `http.client`."""

from __future__ import annotations

import http.client
import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.protocol.headers import read_headers
from tests.fakes import scripted as play
from tests.fakes.scripted import Script
from tests.gateway.conftest import Scripted
from tests.gateway.managed import last_sent, make_prompt
from tests.gateway.service import Gateway
from tests.gateway.wire import ENDPOINT, body
from tests.waiting import TIMEOUT_SECONDS

NAME = "Müller"
HEADERS = {
    "x-svc-prompt-config": "größe",
    "x-svc-var-user-name": NAME,
    "x-svc-user-id": NAME,
    "x-svc-session-id": f"s-{NAME}",
}
_FETCH = """
const [url, key, headers, body] = process.argv.slice(1);
const sent = {...JSON.parse(headers), authorization: `Bearer ${key}`};
const answer = await fetch(url, {method: "POST", headers: sent, body});
console.log(answer.headers.get("x-request-id"));
"""


def by_http_client(gateway: Gateway) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=TIMEOUT_SECONDS)
    connection.request("POST", ENDPOINT, json.dumps(body()), {**HEADERS, **gateway.headers})
    response = connection.getresponse()
    assert response.status == 200, response.read()
    connection.close()
    return str(response.headers["x-request-id"])


def by_node(gateway: Gateway) -> str:
    words = [gateway.service.base_url() + ENDPOINT, gateway.key, json.dumps(HEADERS), json.dumps(body())]
    command = ["node", "--input-type=module", "--eval", _FETCH, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_SECONDS)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def in_bytes(charset: str) -> Callable[[Gateway], str]:
    def send(gateway: Gateway) -> str:
        headers: dict[str, Any] = {name: value.encode(charset) for name, value in HEADERS.items()}
        response = gateway.post(body(), headers=headers)
        assert response.status_code == 200, response.text
        return str(response.headers["x-request-id"])

    return send


CLIENTS: dict[str, Callable[[Gateway], str]] = {
    "http.client": by_http_client,
    "Node's fetch": by_node,
    "bytes of Latin-1": in_bytes("latin-1"),
    "bytes of UTF-8": in_bytes("utf-8"),
}


@pytest.mark.parametrize("client", CLIENTS)
def test_header_texts__of_every_client__arrive_as_meant(scripted: Scripted, client: str) -> None:
    project, script = scripted(play.answer())
    make_prompt(project, "You help {{ user_name }}.", name="größe", variables=[{"name": "user_name", "type": "string"}])

    record = project.record(CLIENTS[client](project))

    assert _system_message(script) == f"You help {NAME}."
    assert (record.user_id, record.session_id) == (NAME, f"s-{NAME}")


def test_variable__255_characters_of_latin_1__is_served_and_256_are_refused(gateway: Gateway) -> None:
    for length, status in ((255, 200), (256, 400)):
        response = gateway.post(body(), headers={"x-svc-var-name": ("é" * length).encode("latin-1")})

        assert response.status_code == status, response.text


@given(st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=50))
def test_text__in_utf_8__is_read_as_it_was_written(text: str) -> None:
    assert read_headers([(b"x-svc-user-id", text.encode())]).user_id == text


@given(st.binary(max_size=50))
def test_text__of_any_bytes__loses_none_but_nul(value: bytes) -> None:
    read = read_headers([(b"x-svc-user-id", value)]).user_id

    assert value.replace(b"\x00", b"") in (read.encode(), read.encode("latin-1", "replace"))


def _system_message(script: Script) -> str:
    return str(last_sent(script)["messages"][0]["content"])
