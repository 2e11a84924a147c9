"""Streamed responses, as OpenAI's SDK reads them."""

from __future__ import annotations

import json
from typing import Any

from core.errors import ServiceUnavailableError
from gateway.surfaces.responses.surface import SURFACE
from tests.gateway.surfaces.responses.chunks import (
    REQUEST_ID,
    chunk,
    events_of,
    last_chunk,
    read_by_the_sdk,
    request,
)

ROLE = chunk({"role": "assistant", "content": ""})
TEXTS = [ROLE, chunk({"content": "Hel"}), chunk({"content": "lo"})]


def streamed(chunks: list[bytes], last: list[bytes], **fields: Any) -> list[dict[str, Any]]:
    stream = SURFACE.stream(request(**fields), REQUEST_ID)
    return events_of(stream.feed(chunks) + stream.close(last))


def test_reasoning_with_its_details__included__comes_back_as_it_was() -> None:
    details = [
        {"type": "reasoning.text", "text": "Hm", "signature": "c2ln", "format": "anthropic-claude-v1", "index": 0}
    ]
    events = streamed(
        [ROLE, chunk({"reasoning_content": "Hm"}), chunk({"reasoning_details": details}), chunk({"content": "Yes"})],
        [last_chunk()],
        include=["reasoning.encrypted_content"],
    )

    final = read_by_the_sdk(events)
    reasoning = final.output[0]
    assert reasoning.type == "reasoning"
    assert [part.text for part in reasoning.summary] == ["Hm"]
    again = SURFACE.read(
        json.dumps(
            {"model": "m", "input": [{"role": "user", "content": "?"}, *(item.to_dict() for item in final.output)]}
        ).encode()
    )
    assert json.loads(again.body)["messages"][1] == {
        "role": "assistant",
        "reasoning_content": "Hm",
        "reasoning_details": details,
        "content": "Yes",
    }


def test_stream__fails_after_output__ends_with_the_failed_response() -> None:
    stream = SURFACE.stream(request(), REQUEST_ID)

    events = events_of(stream.feed(TEXTS) + stream.fail(ServiceUnavailableError("The provider went away")))

    assert events[-1]["type"] == "response.failed"
    assert events[-1]["response"]["error"] == {"code": "service_unavailable", "message": "The provider went away"}
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == "Hello"
