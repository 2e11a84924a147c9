from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from core.openapi.document import BEARER, REQUEST_ID
from core.openapi.handwritten import failures
from core.openapi.operations import JSON
from core.openapi.shapes import reference
from gateway.openapi.parts import FAILURES


class Health(TypedDict):
    status: Literal["ok"]
    in_flight: NotRequired[int]


class Readiness(TypedDict):
    """`failing` names the checks that do not hold, `pending` what is still being prepared while the worker serves. The
    other fields are for keys of `manage` and `metrics:read`."""

    status: Literal["ready", "not_ready"]
    failing: list[str]
    pending: NotRequired[list[str]]
    checks: NotRequired[dict[str, Literal["passed", "failed", "pending"]]]
    in_flight: NotRequired[int]
    host: NotRequired[dict[str, Any]]


def probes() -> dict[str, Any]:
    there = {"200": _answer("It is.", Health), **failures((405,), FAILURES)}
    alive = {"200": _answer("The worker is alive.", Health)}
    ready = {"200": _answer("It should.", Readiness), "503": _answer("It should not.", Readiness)}
    return {
        "/api/gateway": {"get": _operation("checkGateway", "Whether the gateway's base address is right", there, [{}])},
        "/healthz": {"get": _operation("checkHealth", "Whether a worker is alive", alive, [{}])},
        "/readyz": {"get": _operation("checkReadiness", "Whether it should get traffic", ready, [{}, {BEARER: []}])},
    }


def _operation(
    operation_id: str, summary: str, responses: dict[str, Any], security: list[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "operationId": operation_id,
        "summary": summary,
        "description": "Answers from memory: no other service is asked.",
        "tags": ["health"],
        "security": security,
        "parameters": [],
        "responses": responses,
    }


def _answer(description: str, shape: Any) -> dict[str, Any]:
    return {"description": description, "headers": REQUEST_ID, "content": {JSON: {"schema": reference(shape)}}}
