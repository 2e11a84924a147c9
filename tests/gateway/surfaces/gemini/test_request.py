"""What the surface makes of a request, and what it says of a wrong one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.errors import NotFoundError, ValidationError
from gateway.surfaces.gemini.address import surface_at, surface_at_url
from gateway.surfaces.gemini.foreign import opened, sealed
from integrations.providers.google.messages import UNSIGNED
from tests.gateway.surfaces.gemini.clients import SURFACE, ask
from tests.tables.cases import tabled

CALL = {"functionCall": {"name": "read", "args": {"path": "ä"}}}
RESULT = {"functionResponse": {"name": "read", "response": {"output": "text"}}}
CLAUDES = [{"type": "reasoning.text", "text": "Hm.", "signature": "c2ln", "format": "anthropic-claude-v1", "index": 0}]


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "parts": list(parts)}


def model(*parts: Any) -> dict[str, Any]:
    return {"role": "model", "parts": list(parts)}


def test_seal__of_another_vendor__returns_to_it_and_never_to_google() -> None:
    seal = sealed(CLAUDES)
    content = model({"text": "Hm.", "thought": True}, {**CALL, "thoughtSignature": seal})
    body = ask(contents=[user({"text": "Go"}), content, user(RESULT)])

    _, called, _ = json.loads(SURFACE.read(body).body)["messages"]
    forwarded = json.loads(SURFACE.forwarded(body))["contents"][1]["parts"]

    assert called["reasoning_details"] == CLAUDES == opened(seal.replace("+", "-").replace("/", "_"), "x")
    assert called["reasoning_content"] == "Hm."
    assert forwarded[-1] == {**CALL, "thoughtSignature": UNSIGNED}


def test_seal__that_was_changed__is_refused() -> None:
    part = {**CALL, "thoughtSignature": sealed(CLAUDES)[:-8] + "AAAA!!"}

    with pytest.raises(ValidationError, match="this is not the value that the gateway gave"):
        SURFACE.read(ask(contents=[user({"text": "Go"}), model(part)]))


@tabled
def test_address__names_the_model(path: str, name: str) -> None:
    assert surface_at(path, "").model == name
    assert surface_at_url(path.replace("openai/", "openai%2F")).model == name


def test_address__of_a_stream__says_its_form() -> None:
    path = "/api/gateway/v1beta/models/m:streamGenerateContent"

    assert surface_at(path, "").as_array
    assert not surface_at(path, "alt=sse").as_array
    assert json.loads(surface_at(path, "alt=sse").read(ask()).body)["stream"] is True


def test_address__without_a_method_or_with_a_key__is_refused() -> None:
    with pytest.raises(NotFoundError):
        surface_at("/api/gateway/v1beta/models/m:explain", "")
    with pytest.raises(ValidationError, match="x-goog-api-key"):
        surface_at("/api/gateway/v1beta/models/m:generateContent", "key=svc_1")
