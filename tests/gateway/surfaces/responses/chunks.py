"""Chat completions and chunks that the tests translate, and the SDK's own reading of the events."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from openai import omit
from openai._models import construct_type_unchecked
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types.responses import Response, ResponseStreamEvent

from gateway.surfaces.base import SurfaceRequest

REQUEST_ID = "0199e0a0"
USAGE = {
    "prompt_tokens": 11,
    "completion_tokens": 7,
    "total_tokens": 18,
    "prompt_tokens_details": {"cached_tokens": 3},
    "completion_tokens_details": {"reasoning_tokens": 2},
}

Json = dict[str, Any]


def request(**fields: Any) -> SurfaceRequest:
    return SurfaceRequest(b"{}", echo={"model": "gpt-5", "input": "Hi", **fields})


def chunk(delta: Mapping[str, Any], finish_reason: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return json.dumps(
        {"id": "chatcmpl-1", "created": 1_790_000_000, "model": "gpt-5", "choices": [choice], **more}
    ).encode()


def last_chunk(finish_reason: str = "stop") -> bytes:
    return chunk({}, finish_reason, usage=USAGE)


def events_of(frames: bytes) -> list[Json]:
    """Returns the events, each of which has to be framed under its own name."""
    found = []
    for block in frames.decode().split("\n\n")[:-1]:
        name, data = block.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        found.append(event)
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    return found


def read_by_the_sdk(events: Sequence[Json]) -> Response:
    """Returns the response that OpenAI's SDK puts together from the events."""
    state: ResponseStreamState[Any] = ResponseStreamState(input_tools=omit, text_format=omit)
    for event in events:
        state.handle_event(construct_type_unchecked(type_=ResponseStreamEvent, value=event))  # type: ignore[arg-type]
    assert state._completed_response is not None
    return state._completed_response
