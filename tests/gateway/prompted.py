"""Requests as the prompt stage gets them, and as they leave it, without a service around the stage."""

from __future__ import annotations

import json
import time
from typing import Any
from uuid import uuid4

from hypothesis import strategies as st

from core.keys.services import KeyRecord
from gateway.pipeline.context import RequestContext, RequestState
from gateway.pipeline.prompt import with_prompt
from gateway.project_settings.settings import ProjectSettings
from gateway.protocol.headers import read_headers
from gateway.protocol.wire import LazyFields, decode_request
from gateway.snapshot.project import ProjectSnapshot
from gateway.snapshot.prompts import ManagedPrompt
from prompts.content.templating import compile_messages
from prompts.selectors import PromptVersionRecord

PROJECT = uuid4()
ROLLOUT = "01890000-0000-7000-8000-000000000001"
KEY = KeyRecord(id=1, project_id=PROJECT, key_hash="", scopes=frozenset({"gateway"}), expires_at=None)
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def a_version(
    text: str = "Be kind.", variables: Any = (), *, messages: Any = (), **content: Any
) -> PromptVersionRecord:
    """Returns a compiled version of one text, or of these roles and texts."""
    fields: dict[str, Any] = {"model": "", "temperature": None, "max_tokens": None, "tools": None}
    fields |= {"response_format": None, **content}
    for name in ("tools", "response_format"):
        if fields[name] is not None:
            fields[name] = json.dumps(fields[name]).encode()
    return PromptVersionRecord(uuid4(), 3, compile_messages(messages or [("system", text)], variables), **fields)


def a_prompt(version: PromptVersionRecord | None, name: str = "support", **fields: Any) -> ManagedPrompt:
    return ManagedPrompt("c-1", name, version, **fields)


def injected(
    fields: dict[str, Any] | bytes,
    *prompts: ManagedPrompt,
    headers: dict[str, str] | None = None,
) -> tuple[RequestContext, RequestState]:
    """Returns the prompt stage's result for a request, and its state. A request that is a dict names the config
    `support`."""
    given_fields = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "prompt_config": "support"}
    body = json.dumps({**given_fields, **fields}).encode() if isinstance(fields, dict) else fields
    snapshot = ProjectSnapshot(
        PROJECT, str(PROJECT), {}, {}, {}, ProjectSettings(), 1, {prompt.name: prompt for prompt in prompts}
    )
    read = read_headers([(name.encode(), value.encode()) for name, value in (headers or {}).items()])
    request = decode_request(body)
    state = RequestState("r-1", 0, time.perf_counter(), snapshot, KEY, read, body, request)
    context = RequestContext(snapshot, read, body, request, LazyFields(body))
    return with_prompt(context, state), state


def sent(context: RequestContext) -> dict[str, Any]:
    """Returns the request that the adapters get; its body, fields and parsed form have to agree."""
    body: dict[str, Any] = json.loads(context.body)
    assert dict(context.fields) == body
    assert len(context.request.messages) == len(body["messages"])
    assert context.request.messages[0].content == body["messages"][0]["content"]
    assert (context.request.model, context.request.temperature) == (body["model"], body.get("temperature"))
    assert (context.request.max_tokens, bool(context.request.tools)) == (
        body.get("max_tokens"),
        bool(body.get("tools")),
    )
    return body
