"""The requests of a client of the gateway and how it reads the answers, without code of the product."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

import httpx2

ENDPOINT = "/api/gateway/v1/chat/completions"
UUID = re.compile(r"^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$")


def body(**fields: Any) -> dict[str, Any]:
    """Returns a small valid request; a field given as `...` is left out."""
    given = {"model": "openai/gpt-4o", "messages": [{"role": "user", "content": "hi"}], **fields}
    return {name: value for name, value in given.items() if value is not ...}


def encoded(**fields: Any) -> bytes:
    return json.dumps(body(**fields)).encode()


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}", "content-type": "application/json"}


def assert_request_id(response: httpx2.Response) -> str:
    request_id = response.headers["x-request-id"]
    assert UUID.match(request_id), request_id
    return request_id


def assert_error(
    response: httpx2.Response, status: int, code: str, *, type: str = "", naming: str = "", provider_error_of: str = ""
) -> str:
    """Checks the whole error envelope, to which only the error object of the provider `provider_error_of` may be added.
    Returns the message."""
    assert response.status_code == status, response.text[:500]
    assert_request_id(response)
    assert response.headers["content-type"].startswith("application/json")
    answer = response.json()
    assert set(answer) == {"error"}
    error = answer["error"]
    if provider_error_of:
        details = error.pop("provider_error")
        assert set(details) == {"provider", "status", "error"}
        assert details["provider"] == provider_error_of
        assert isinstance(details["error"], dict)
    assert set(error) == {"message", "type", "code"}
    assert all(isinstance(value, str) and value for value in error.values()), error
    assert error["code"] == code, error
    if type:
        assert error["type"] == type, error
    assert naming in error["message"], error
    message: str = error["message"]
    return message


@dataclass
class Stream:
    """A decoded stream of the gateway: JSON of its events, positions of its comments, and whether it ended well."""

    chunks: list[dict[str, Any]] = field(default_factory=list)
    comments: int = 0
    done: bool = False

    @property
    def errors(self) -> list[dict[str, Any]]:
        return [chunk["error"] for chunk in self.chunks if "error" in chunk]

    @property
    def text(self) -> str:
        deltas = (
            choice["delta"] for chunk in self.chunks for choice in chunk.get("choices", []) if choice["index"] == 0
        )
        return "".join(delta.get("content") or "" for delta in deltas)


def read_stream(raw: bytes) -> Stream:
    """Decodes a stream strictly: every block is one `data: ` line or one comment line, `[DONE]` comes once and last."""
    assert raw.endswith(b"\n\n"), raw[-80:]
    stream = Stream()
    for block in raw[:-2].split(b"\n\n"):
        assert not stream.done, block
        assert b"\n" not in block, block
        if block.startswith(b":"):
            stream.comments += 1
        elif block == b"data: [DONE]":
            stream.done = True
        else:
            assert block.startswith(b"data: "), block
            stream.chunks.append(json.loads(block[6:]))
    assert stream.done
    return stream


def without_comments(raw: bytes) -> bytes:
    return b"".join(block + b"\n\n" for block in raw.split(b"\n\n") if block and not block.startswith(b":"))


def assert_closing_chunk(stream: Stream) -> dict[str, Any]:
    """Checks that usage comes once, in the last chunk, with an empty delta and a finish reason. Returns the usage."""
    with_usage = [chunk for chunk in stream.chunks if chunk.get("usage")]
    assert with_usage == [stream.chunks[-1]], with_usage
    last = stream.chunks[-1]
    for choice in last["choices"]:
        assert choice["delta"] == {}, last
        assert choice["finish_reason"], last
    assert last["choices"], last
    usage: dict[str, Any] = last["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"] or usage["total_tokens"] > 0
    return usage
