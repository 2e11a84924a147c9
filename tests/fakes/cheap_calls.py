"""Fakes the providers' calls that cost nothing: lists of models, a key's description, a count of tokens.

The fake is as strict as the vendors: an unknown path or version gets 404 or 400, and a wrong key 401 in the vendor's
own words. `tests/integrations/test_fake_cheap_calls.py` compares the fake with the vendors' SDKs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from integrations.providers.openai.compatible import DIALECTS
from tests.fakes.dialects.registry import FAKES
from tests.fakes.dialects.server import read_request, script_path
from tests.fakes.dialects.story import Reply, Story
from tests.fakes.scripted import Step
from tests.fakes.upstream import Connection, Received

_JSON = {"content-type": "application/json"}
_OPENAI_MODEL = {"id": "fake-1", "object": "model", "created": 1_760_000_000, "owned_by": "fake"}
_OPENAI_LIST = {"object": "list", "data": [_OPENAI_MODEL]}


@dataclass(frozen=True)
class Listing:
    path: str
    answer: Any
    key: tuple[str, str] = ("authorization", "Bearer ")
    method: str = "GET"
    headers: Mapping[str, str] | None = None


LISTINGS: Mapping[str, Listing] = {
    "anthropic": Listing(
        r"/v1/models(\?limit=\d+)?",
        {
            "data": [
                {
                    "type": "model",
                    "id": "claude-sonnet-5",
                    "display_name": "Claude Sonnet 5",
                    "created_at": "2026-02-19T00:00:00Z",
                }
            ],
            "has_more": False,
            "first_id": "claude-sonnet-5",
            "last_id": "claude-sonnet-5",
        },
        key=("x-api-key", ""),
        headers={"anthropic-version": r"20\d\d-\d\d-\d\d"},
    ),
    "azure_openai": Listing(
        r"/openai/models\?api-version=20\d\d-\d\d-\d\d(-preview)?|/openai/v1/models",
        {
            "object": "list",
            "data": [
                {
                    "id": "gpt-4o-mini",
                    "object": "model",
                    "created_at": 1_700_000_000,
                    "status": "succeeded",
                    "lifecycle_status": "generally-available",
                    "capabilities": {"inference": True, "chat_completion": True},
                }
            ],
        },
        key=("api-key", ""),
    ),
    "google": Listing(
        r"(/v1beta|/v1)?/models(\?pageSize=\d+)?",
        {
            "models": [
                {
                    "name": "models/gemini-2.5-flash",
                    "displayName": "Gemini 2.5 Flash",
                    "supportedGenerationMethods": ["generateContent", "countTokens"],
                }
            ],
            "nextPageToken": "more",
        },
        key=("x-goog-api-key", ""),
    ),
    "google_vertex": Listing(
        r"(/v1beta1|/v1)?/projects/[\w-]+/locations/[\w-]+/publishers/google/models/[\w.-]+:countTokens",
        {"totalTokens": 1, "totalBillableCharacters": 2},
        method="POST",
    ),
    "cohere": Listing(
        r"/v1/models\?page_size=\d+",
        {"models": [{"name": "command-a-03-2025", "endpoints": ["chat"], "context_length": 288000}]},
    ),
    "openrouter": Listing(
        r"/api/v1/key",
        {"data": {"label": "sk-or-v1-can...a9c", "limit": 10, "limit_remaining": 9.5, "usage": 0.5}},
    ),
    "mistral": Listing(
        r"/v1/models",
        {
            "object": "list",
            "data": [{**_OPENAI_MODEL, "type": "base", "capabilities": {"completion_chat": True, "vision": False}}],
        },
    ),
    # Together answers with a bare list: https://docs.together.ai/reference/models
    "together": Listing(r"/v1/models", [{**_OPENAI_MODEL, "type": "chat"}]),
}
# The credential of these providers is tested with a completion of one token.
_COMPLETING = {"azure_anthropic", *(row.provider for row in DIALECTS if not row.list_needs_key)}
_LISTS_IN_VAIN = {"openrouter": r"/api/v1/models"}


def cheap_call(provider: str, secret: str | None = None) -> Step:
    """The only valid key is `secret`, or that of the provider's fake."""
    fake = FAKES[provider]
    key = fake.credentials("").secret if secret is None else secret

    async def step(received: Received, connection: Connection) -> None:
        reply = _completed(provider, key, received) if provider in _COMPLETING else _listed(provider, key, received)
        await connection.send_whole(reply.status, reply.body, {k.lower(): v for k, v in reply.headers.items()})

    return step


def refuses(provider: str, status: int, message: str, *, retry_after: int | None = None) -> Step:
    """Fails every request in the provider's own shape; `{key}` in the message is the key that was sent."""

    async def step(received: Received, connection: Connection) -> None:
        text = message.replace("{key}", sent_key(received))
        reply = FAKES[provider].failure(status, text, retry_after=retry_after)
        await connection.send_whole(reply.status, reply.body, {k.lower(): v for k, v in reply.headers.items()})

    return step


def sent_key(received: Received) -> str:
    for name in ("x-api-key", "api-key", "x-goog-api-key", "authorization"):
        if name in received.headers:
            return received.headers[name].removeprefix("Bearer ")
    return ""


def _listed(provider: str, key: str, received: Received) -> Reply:
    fake = FAKES[provider]
    listing = LISTINGS.get(provider) or Listing(_openai_path(provider), _OPENAI_LIST)
    path = script_path(received.path)
    if re.fullmatch(_LISTS_IN_VAIN.get(provider, "-"), path):
        return _json(_OPENAI_LIST)
    if received.method != listing.method or not re.fullmatch(listing.path, path):
        return fake.failure(404, f"no such path: {received.method} {path}")
    for name, form in (listing.headers or {}).items():
        if not re.fullmatch(form, received.headers.get(name, "")):
            return fake.failure(400, f"{name}: header is required")
    header, scheme = listing.key
    # Anthropic's official SDK sends the key as a bearer token; the vendor accepts both headers.
    bearer = provider == "anthropic" and received.headers.get("authorization") == f"Bearer {key}"
    if received.headers.get(header) != f"{scheme}{key}" and not bearer:
        return fake.failure(401, f"Incorrect API key provided: {sent_key(received)}")
    return _json(listing.answer)


def _completed(provider: str, key: str, received: Received) -> Reply:
    fake = FAKES[provider]
    request = read_request(fake, received)
    if request.secret != key:
        return fake.failure(401, f"Incorrect API key provided: {sent_key(received)}")
    if request.max_tokens != 1:
        return fake.failure(400, "that would cost more than it has to")
    return fake.whole(Story(text="H", finish="length"))


def _openai_path(provider: str) -> str:
    base = FAKES[provider].credentials("").base_url
    return f"{re.escape(base)}/models"


def _json(answer: Any) -> Reply:
    return Reply(200, _JSON, json.dumps(answer).encode())
