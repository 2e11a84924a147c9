"""Cohere's official SDK as a reference for the requests that it would send and the answers that it reads."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, cast, get_type_hints

from cohere.core.unchecked_base_model import construct_type
from cohere.v2.client import V2Client
from cohere.v2.types.v2chat_response import V2ChatResponse
from cohere.v2.types.v2chat_stream_response import V2ChatStreamResponse
from pydantic import BaseModel, TypeAdapter

_PARAMETERS = {
    name: hint for name, hint in get_type_hints(V2Client.chat).items() if name not in ("request_options", "return")
}


def assert_accepted(body: Mapping[str, Any]) -> None:
    """Asserts that every field is a parameter of `chat` with its type, without keys that the type does not know."""
    for name, value in body.items():
        if name == "stream":
            assert isinstance(value, bool)
            continue
        assert name in _PARAMETERS, f"the SDK's chat has no {name}"
        _assert_known(TypeAdapter(_PARAMETERS[name]).validate_python(value, strict=False), name)


def read_answer(body: bytes) -> V2ChatResponse:
    return cast("V2ChatResponse", construct_type(type_=V2ChatResponse, object_=json.loads(body)))


def read_stream(body: bytes) -> list[Any]:
    """Returns the SDK's events; `[DONE]` ends them."""
    lines = body.decode().replace("\r\n", "\n").split("\n")
    payloads = [line[5:].strip() for line in lines if line.startswith("data:")]
    return [
        construct_type(type_=cast("type[Any]", V2ChatStreamResponse), object_=json.loads(payload))
        for payload in payloads
        if payload != "[DONE]"
    ]


def _assert_known(value: Any, place: str) -> None:
    """Asserts that the model has known fields only, since the SDK's models let unknown ones pass."""
    if isinstance(value, BaseModel):
        extra = set(value.model_extra or {})
        assert not extra - {"type"}, f"{place}: the SDK does not know {extra}"
        for name in value.model_fields_set - extra:
            _assert_known(getattr(value, name), f"{place}.{name}")
    elif isinstance(value, (list, tuple)):
        for item in cast("Iterable[Any]", value):
            _assert_known(item, place)
