"""A key of each narrow scope, tried against every operation of the OpenAPI document."""

from __future__ import annotations

import re

import pytest

from core.rights.scopes import MANAGE, SCOPES
from core.roles import Right
from tests.gateway.service import Gateway, GatewayService
from tests.openapi.routes import Operation, operations

_UUID = "019aa000-0000-7000-8000-000000000042"
_NUMBERED = ("key_id", "limit_id", "member_id", "change_id", "position", "team_id", "invitation_id")
_PROMPTS = {"getPrompt", "getPromptByName", "renderPrompt"}
_TELEMETRY = {"exportTraces", "exportLogs", "exportMetrics"}
OPENED = {
    "prompts:read": {"callAgentTools", *_PROMPTS},
    "feedback:write": {"addSessionFeedback"},
    "scores:write": {"recordScore", "recordScores"},
    "telemetry:write": _TELEMETRY,
}


def asked() -> list[Operation]:
    """Returns the operations that ask for a key."""
    return [operation for operation in operations() if operation.right is not Right.OPEN]


def opened(scope: str) -> set[str]:
    below = {
        start: {operation.id for operation in asked() if operation.path.startswith(start)}
        for start in ("/api/gateway/", "/api/llm/metrics/")
    }
    return {
        **OPENED,
        "gateway": {*below["/api/gateway/"], "callAgentTools", *_PROMPTS, *_TELEMETRY},
        "metrics:read": {*below["/api/llm/metrics/"], "prometheusMetrics"},
    }[scope]


def feedback_token(gateway: Gateway, session_id: str) -> str:
    made = gateway.manage("POST", f"sessions/{session_id}/feedback-token", {})
    assert made.status_code == 201, made.text
    token: str = made.json()["token"]
    return token


@pytest.mark.parametrize("scope", [scope for scope in SCOPES if scope != MANAGE])
def test_every_operation__key_of_one_scope__is_403_but_what_the_scope_opens(
    service: GatewayService, gateway: Gateway, scope: str
) -> None:
    key = service.make_key(gateway.project_id, scopes=[scope])
    # The token opens nothing by itself, whatever it is sent to.
    headers = {"x-project-id": gateway.project_id, "x-svc-feedback-token": feedback_token(gateway, _UUID)}
    answered = {}
    for operation in asked():
        path = re.sub(r"{(\w+)}", lambda name: "1" if name[1] in _NUMBERED else _UUID, operation.path)
        if operation.path.startswith("/api/projects/"):
            path = operation.path.format(project_id=gateway.project_id, session_id=_UUID)
        answer = gateway.client.request(
            operation.method.upper(),
            path,
            json=None if operation.method == "get" else {},
            headers={**headers, "authorization": f"Bearer {key}"},
        )
        answered[operation.id] = answer.status_code

    assert answered.keys() >= opened(scope)
    assert {name for name, status in answered.items() if status not in (401, 403)} == opened(scope)
    assert {status for name, status in answered.items() if name not in opened(scope)} == {403}


def test_feedback_key__session_of_somebody_else__is_403(service: GatewayService, gateway: Gateway) -> None:
    key = service.make_key(gateway.project_id, scopes=["feedback:write"])
    headers = {"authorization": f"Bearer {key}", "x-project-id": gateway.project_id}
    body = {"project_id": gateway.project_id, "score": 5}
    token = {"x-svc-feedback-token": feedback_token(gateway, "own")}

    given = gateway.client.post("/api/llm/sessions/own/feedback", json=body, headers={**headers, **token})
    other = gateway.client.post("/api/llm/sessions/others/feedback", json=body, headers={**headers, **token})
    without = gateway.client.post("/api/llm/sessions/own/feedback", json=body, headers=headers)

    assert given.status_code == 201
    assert (other.status_code, other.json()["error"]["code"]) == (403, "feedback_token_invalid")
    assert (without.status_code, without.json()["error"]["code"]) == (403, "feedback_token_missing")
    assert gateway.manage("GET", "sessions/others/feedback").json()["count"] == 0
