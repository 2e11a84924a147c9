"""Examples of translations: their inputs, as the tables of this folder state them.

An example has `request` and `context` in OpenAI's words, and one of `whole` (the vendor's answer), `events` (its
stream) or `failure` (status, headers and body), or none of these: then the request itself is translated.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

from integrations.providers.base import Adapter, ChatRequest, Credentials, Media
from integrations.providers.openai.responses_adapter import ADAPTERS as BY_RESPONSES
from integrations.registry import adapter_for
from tests.fakes.dialects.bedrock import frame

Example = Mapping[str, Any]

_RESPONSES = "responses/"
_BEDROCK = {
    "access_key_id": "AKIDEXAMPLE",
    "secret_access_key": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
    "region": "us-east-1",
}
_TUPLES = {"forward_headers": tuple, "own_parameters": frozenset, "warnings": tuple}


def adapter_of(example: Example) -> Adapter:
    """Returns the adapter of the example's provider; `responses/openai` is OpenAI's over its Responses API."""
    provider = example["provider"]
    if provider.startswith(_RESPONSES):
        return BY_RESPONSES[provider.removeprefix(_RESPONSES)]
    return adapter_for(provider)


def credentials_of(example: Example) -> Credentials:
    provider = example["provider"].removeprefix(_RESPONSES)
    usual = {"secret": "", "extra": _BEDROCK} if provider == "bedrock" else {"secret": "sk-test"}
    given = {**usual, **example.get("credentials", {})}
    fields = {name: _TUPLES.get(name, _same)(value) for name, value in given.items()}
    return Credentials(**{"integration_id": 1, "provider": provider, "base_url": "", **fields})


def request_of(example: Example) -> ChatRequest:
    """Returns the request as the pipeline passes it: with the fields of the client, and the bytes that said them."""
    model = example.get("model", "")
    fields = {"model": model, **example.get("request", {})}
    context = dict(example.get("context", {}))
    body = context.pop("body", None)
    files = {url: Media(kind, base64.b64decode(data)) for url, (kind, data) in context.pop("media", {}).items()}
    return ChatRequest(
        **{
            "model": model,
            "stream": bool(fields.get("stream")),
            "body": json.dumps(fields, ensure_ascii=False).encode() if body is None else body.encode(),
            "fields": fields,
            "media": files,
            **{name: _TUPLES.get(name, _same)(value) for name, value in context.items()},
        }
    )


def bytes_of(value: Any) -> bytes:
    """Returns a body: of JSON, of a text as it is, of bytes that are no text."""
    if isinstance(value, str):
        return value.encode()
    if _is_raw(value):
        return base64.b64decode(value["base64"])
    return json.dumps(value, ensure_ascii=False).encode()


def pieces_of(example: Example) -> list[bytes]:
    """Returns the vendor's stream, an event a piece."""
    events = example["events"]
    framing, *end = example.get("framing", "data").split("+")
    if framing == "array":
        return _array(events)
    pieces = [bytes_of(one) if _is_raw(one) else _FRAMINGS[framing](one) for one in events]
    return pieces + [b"data: [DONE]\n\n"] * len(end)


def _is_raw(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, Mapping) and set(value) == {"base64"})


def _data(event: Any) -> bytes:
    return b"data: %b\n\n" % bytes_of(event)


def _named(event: Any) -> bytes:
    return b"event: %b\n%b" % (str(event.get("type")).encode(), _data(event))


def _frame(event: Any) -> bytes:
    """Returns a frame of AWS: `{"exception": …}` for one that reports a failure."""
    ((kind, payload),) = event.items()
    if kind.endswith("Exception"):
        return frame({":message-type": "exception", ":exception-type": kind}, payload)
    head = {":message-type": "event", ":event-type": kind, ":content-type": "application/json"}
    return frame(head, payload)


def _array(events: Sequence[Any]) -> list[bytes]:
    """Returns the events as one JSON array, the form of Gemini without `alt=sse`."""
    starts = [b"[", *[b"\n,\n"] * (len(events) - 1)]
    return [*(start + bytes_of(event) for start, event in zip(starts, events, strict=True)), b"\n]"]


_FRAMINGS = {
    "data": _data,
    "crlf": lambda event: b"data: %b\r\n\r\n" % bytes_of(event),
    "named": _named,
    "frames": _frame,
}


def _same(value: Any) -> Any:
    return value
