"""No provider key, service key or prompt is in what clients or operators see of failures."""

from __future__ import annotations

import json
import uuid

from tests.fakes import scripted as play
from tests.gateway.conftest import Scripted
from tests.gateway.service import PROVIDER_SECRET
from tests.gateway.wire import body

PROMPT = "canary-prompt-4711-do-not-log"


def test_provider_key__quoted_by_the_provider__never_reaches_the_client_or_the_record(scripted: Scripted) -> None:
    quoted = f"Incorrect API key provided: {PROVIDER_SECRET}. Authorization: Bearer {PROVIDER_SECRET}"
    error = json.dumps({"error": {"message": quoted}}).encode()
    steps = [
        *(play.status(code, quoted) for code in (400, 401, 404, 429, 500)),
        play.raw(502, quoted.encode()),
        play.raw(200, quoted.encode()),
        play.raw(200, error),
        play.stream(play.ROLE, play.chunk({"content": "x"}), b"data: " + error + b"\n\n"),
        play.stream(b"data: " + error + b"\n\n"),
    ]
    gateway, script = scripted(*steps)

    for step in range(len(steps)):
        response = gateway.post(body(stream=step >= 8))

        assert PROVIDER_SECRET not in response.text
        assert PROVIDER_SECRET not in str(response.headers)
        assert PROVIDER_SECRET not in gateway.record(response).error_message
    assert all(request.headers["authorization"] == f"Bearer {PROVIDER_SECRET}" for request in script.received)


def test_log__after_every_kind_of_request__holds_no_key_and_no_prompt(scripted: Scripted) -> None:
    gateway, _ = scripted(
        play.answer(),
        play.status(401),
        play.status(500),
        play.garbage,
        play.reset,
        play.stream(play.ROLE, play.chunk({"content": "x"}), end="reset"),
        play.raw(200, b"{broken"),
    )
    messages = [{"role": "user", "content": PROMPT}]
    for step in range(7):
        gateway.post(body(messages=messages, stream=step in (3, 5)), headers={"x-svc-session-id": PROMPT})
    gateway.post(body(messages=messages, temperature=9))
    gateway.post(json.dumps(body(messages=messages)).encode()[:-3])
    wrong = f"svc_canary{uuid.uuid4().hex}"
    gateway.post(body(messages=messages), key=wrong)

    log = gateway.service.log.read_text(errors="replace")

    for secret in (PROMPT, PROVIDER_SECRET, gateway.key, wrong):
        assert secret not in log


def test_client_headers__are_not_forwarded_to_the_provider(scripted: Scripted) -> None:
    gateway, script = scripted(play.answer())

    response = gateway.post(
        body(),
        headers={
            "cookie": "session=canary",
            "x-svc-session-id": "s1",
            "x-forwarded-for": "10.0.0.1",
            "x-api-key": "canary",
        },
    )

    assert response.status_code == 200
    headers = script.received[0].headers
    assert "cookie" not in headers
    assert not [name for name in headers if name.startswith(("x-svc-", "x-forwarded", "x-api"))]
    assert gateway.key not in str(headers)


def test_provider_headers__are_not_passed_to_the_client(scripted: Scripted) -> None:
    gateway, _ = scripted(
        play.raw(
            200, json.dumps(play.completion()).encode(), {"set-cookie": "a=b", "openai-organization": "org-canary"}
        )
    )

    response = gateway.post(body())

    assert response.status_code == 200
    assert "canary" not in str(response.headers)
    assert "set-cookie" not in response.headers
