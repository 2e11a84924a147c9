"""A fake of Bedrock's Converse as AWS documents it; tests/integrations/fakes compares it with boto3."""

from __future__ import annotations

import base64
import binascii
import json
import re
import struct
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any
from urllib.parse import unquote

from integrations.providers.base import Credentials
from tests.fakes.dialects.story import Call, Can, Finish, ReadRequest, Reply, Story, Streamed

KEY_ID = "AKIAFAKEFAKEFAKE0001"
SECRET_KEY = "fake-secret-access-key-0123456789abcdef"  # The secret belongs to a fake.
REGION = "eu-central-1"

_STOP_REASONS: Mapping[Finish, str] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "guardrail_intervened",
}
_ERROR_TYPES = {
    400: "ValidationException",
    401: "UnrecognizedClientException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    429: "ThrottlingException",
    500: "InternalServerException",
    503: "ServiceUnavailableException",
}
_PATH = re.compile(r"/model/([^/]+)/(converse|converse-stream)")
_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/]+)/\d{8}/[a-z0-9-]+/bedrock/aws4_request, "
    r"SignedHeaders=content-type;host;x-amz-date(?:;x-amz-security-token)?, Signature=[0-9a-f]{64}"
)
_TOOL_USE_ID = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_DOCUMENT_NAME = re.compile(r"(?:[A-Za-z0-9\-()\[\]]|\s(?!\s)){1,200}")
_FIELDS = {
    "messages",
    "system",
    "inferenceConfig",
    "toolConfig",
    "guardrailConfig",
    "additionalModelRequestFields",
    "promptVariables",
    "additionalModelResponseFieldPaths",
    "requestMetadata",
    "performanceConfig",
    "serviceTier",
    "outputConfig",
}
_IMAGE_TYPES = {name: f"image/{name}" for name in ("png", "jpeg", "gif", "webp")}
_DOCUMENT_TYPES = {"pdf": "application/pdf", "txt": "text/plain", "csv": "text/csv", "html": "text/html"}


def frame(headers: Mapping[str, str], payload: Mapping[str, Any]) -> bytes:
    """Returns one message of an AWS event stream
    (https://docs.aws.amazon.com/transcribe/latest/dg/streaming-setting-up.html)."""
    head = b"".join(
        struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", 7, len(value.encode())) + value.encode()
        for name, value in headers.items()
    )
    body = json.dumps(payload, ensure_ascii=False).encode()
    prelude = struct.pack("!II", 16 + len(head) + len(body), len(head))
    message = prelude + struct.pack("!I", binascii.crc32(prelude)) + head + body
    return message + struct.pack("!I", binascii.crc32(message))


class FakeBedrock:
    provider = "bedrock"
    can = Can(signatures=True)

    def credentials(self, base_url: str) -> Credentials:
        keys = {"access_key_id": KEY_ID, "secret_access_key": SECRET_KEY, "region": REGION}
        return Credentials(integration_id=1, provider=self.provider, base_url=base_url, secret="", extra=keys)

    def whole(self, story: Story) -> Reply:
        answer = {
            "metrics": {"latencyMs": 123},
            "output": {"message": {"role": "assistant", "content": list(_blocks(story))}},
            "stopReason": _STOP_REASONS[story.finish],
            "usage": _usage(story),
        }
        return _json(200, answer)

    def stream(self, story: Story) -> Streamed:
        end = [
            _event("messageStop", stopReason=_STOP_REASONS[story.finish]),
            _event("metadata", metrics={"latencyMs": 123}, usage=_usage(story)),
        ]
        return Streamed(_EVENT_STREAM, (*_content_events(story), *end))

    def failure(self, status: int, message: str, *, retry_after: int | None = None) -> Reply:
        kind = _ERROR_TYPES.get(status, "ServiceException")
        headers = {"x-amzn-errortype": f"{kind}:http://internal.amazon.com/coral/com.amazon.bedrock/"}
        if retry_after is not None:
            headers["retry-after"] = str(retry_after)
        # AWS's front ends write this field's name in either letter case.
        return _json(status, {"Message" if status in (401, 403) else "message": message}, headers)

    def stream_failure(self, story: Story, message: str) -> Streamed:
        head = {":message-type": "exception", ":exception-type": "throttlingException"}
        error = frame({**head, ":content-type": "application/json"}, {"message": message})
        return Streamed(_EVENT_STREAM, (*_content_events(story), error))

    def read(self, path: str, headers: Mapping[str, str], body: bytes) -> ReadRequest:
        found = _PATH.fullmatch(path)
        assert found, path
        assert headers["content-type"] == "application/json"
        fields: dict[str, Any] = json.loads(body)
        assert set(fields) <= _FIELDS, set(fields) - _FIELDS
        messages = fields["messages"]
        _check_messages(messages, fields.get("toolConfig"))
        blocks = [block for message in messages for block in message["content"]]
        inference = fields.get("inferenceConfig", {})
        assert 0 <= inference.get("temperature", 0) <= 1
        tools = fields.get("toolConfig", {}).get("tools", [])
        return ReadRequest(
            model=unquote(found.group(1)),
            stream=found.group(2) == "converse-stream",
            system="\n".join(block["text"] for block in fields.get("system", ()) if "text" in block),
            turns=tuple(_turns(messages)),
            images=tuple(_media(blocks, "image", _IMAGE_TYPES)),
            documents=tuple(_media(blocks, "document", _DOCUMENT_TYPES)),
            tools=tuple(tool["toolSpec"]["name"] for tool in tools if "toolSpec" in tool),
            calls=tuple(_call(block["toolUse"]) for block in blocks if "toolUse" in block),
            results=tuple(_result(block["toolResult"]) for block in blocks if "toolResult" in block),
            tool_choice=_choice(fields.get("toolConfig", {}).get("toolChoice", {})),
            schema=_schema(fields),
            stop=tuple(inference.get("stopSequences", ())),
            max_tokens=inference.get("maxTokens"),
            temperature=inference.get("temperature"),
            top_p=inference.get("topP"),
            signatures=tuple(_signatures(blocks)),
            secret=_secret(headers),
        )


_EVENT_STREAM = {"content-type": "application/vnd.amazon.eventstream"}


def _json(status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Reply:
    given = {"content-type": "application/json", **(headers or {})}
    return Reply(status, given, json.dumps(body, ensure_ascii=False).encode())


def _usage(story: Story) -> dict[str, int]:
    usage = story.usage
    cached = usage.cache_read_tokens + usage.cache_write_tokens
    return {
        "inputTokens": usage.prompt_tokens - cached,
        "outputTokens": usage.completion_tokens,
        "totalTokens": usage.total_tokens,
        "cacheReadInputTokens": usage.cache_read_tokens,
        "cacheWriteInputTokens": usage.cache_write_tokens,
    }


def _blocks(story: Story) -> Iterator[dict[str, Any]]:
    if story.reasoning or story.signature:
        thought = {"text": story.reasoning}
        if story.signature:
            thought["signature"] = story.signature
        yield {"reasoningContent": {"reasoningText": thought}}
    if story.text:
        yield {"text": story.text}
    for call in story.calls:
        yield {"toolUse": {"toolUseId": call.id, "name": call.name, "input": dict(call.arguments)}}


def _event(kind: str, **payload: Any) -> bytes:
    headers = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    # AWS pads each frame to a changing length, against guesses from the sizes of encrypted frames.
    return frame(headers, {**payload, "p": "abcdefghijkl"})


def _content_events(story: Story) -> Iterator[bytes]:
    blocks = list(_blocks(story))
    if blocks or story.usage.completion_tokens:
        yield _event("messageStart", role="assistant")
    for index, block in enumerate(blocks):
        if "toolUse" in block:
            use = block["toolUse"]
            start = {"toolUse": {"toolUseId": use["toolUseId"], "name": use["name"]}}
            yield _event("contentBlockStart", contentBlockIndex=index, start=start)
        for delta in _deltas(block, story.pieces):
            yield _event("contentBlockDelta", contentBlockIndex=index, delta=delta)
        yield _event("contentBlockStop", contentBlockIndex=index)


def _deltas(block: Mapping[str, Any], pieces: int) -> Iterator[dict[str, Any]]:
    if "text" in block:
        yield from ({"text": piece} for piece in _cut(block["text"], pieces))
    elif "toolUse" in block:
        text = json.dumps(block["toolUse"]["input"], ensure_ascii=False) if block["toolUse"]["input"] else ""
        yield from ({"toolUse": {"input": piece}} for piece in ("", *_cut(text, pieces)))
    else:
        thought = block["reasoningContent"]["reasoningText"]
        yield from ({"reasoningContent": {"text": piece}} for piece in _cut(thought["text"], pieces))
        if "signature" in thought:
            yield {"reasoningContent": {"signature": thought["signature"]}}


def _cut(text: str, pieces: int) -> list[str]:
    size = max(1, -(-len(text) // pieces))
    return [text[start : start + size] for start in range(0, len(text), size)]


def _check_messages(messages: list[dict[str, Any]], tool_config: Mapping[str, Any] | None) -> None:
    assert messages, "messages are missing"
    assert messages[0]["role"] == "user", "a conversation must start with a user message"
    for before, after in pairwise(messages):
        assert before["role"] != after["role"], "roles must alternate"
    names: list[str] = []
    for message in messages:
        assert message["content"], "a message is empty"
        for block in message["content"]:
            _check_block(block, tool_config)
            names += [block["document"]["name"]] if "document" in block else []
        if any("document" in block for block in message["content"]):
            assert any("text" in block for block in message["content"]), "a document needs a text block beside it"
    assert len(set(names)) == len(names), "document names must be unique"


def _check_block(block: Mapping[str, Any], tool_config: Mapping[str, Any] | None) -> None:
    (kind,) = block
    if kind == "text":
        assert block["text"].strip(), "the text field is blank"
    elif kind in ("toolUse", "toolResult"):
        assert tool_config, "toolConfig must be defined beside toolUse and toolResult blocks"
        assert _TOOL_USE_ID.fullmatch(block[kind]["toolUseId"])
        if kind == "toolUse":
            assert _TOOL_NAME.fullmatch(block[kind]["name"])
            assert isinstance(block[kind]["input"], dict)
        for part in block[kind].get("content", ()):
            assert "text" not in part or part["text"].strip(), "the text field is blank"
    elif kind == "document":
        assert _DOCUMENT_NAME.fullmatch(block[kind]["name"]), block[kind]["name"]


def _turns(messages: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    for message in messages:
        texts = [block["text"] for block in message["content"] if "text" in block]
        if texts:
            yield message["role"], "".join(texts)


def _media(blocks: list[dict[str, Any]], kind: str, types: Mapping[str, str]) -> Iterator[tuple[str, bytes | str]]:
    for block in blocks:
        for part in [block, *block.get("toolResult", {}).get("content", ())]:
            if kind in part:
                source = part[kind]["source"]
                if "s3Location" in source:
                    yield "url", source["s3Location"]["uri"]
                else:
                    yield types[part[kind]["format"]], base64.b64decode(source["bytes"], validate=True)


def _call(use: Mapping[str, Any]) -> Call:
    return Call(use["toolUseId"], use["name"], use["input"])


def _result(result: Mapping[str, Any]) -> tuple[str, str]:
    parts = [part.get("text") or json.dumps(part["json"]) for part in result["content"] if {"text", "json"} & set(part)]
    return result["toolUseId"], "".join(parts)


def _choice(choice: Mapping[str, Any]) -> str:
    if not choice:
        return ""
    (kind,) = choice
    return f"function:{choice['tool']['name']}" if kind == "tool" else {"auto": "auto", "any": "required"}[kind]


def _schema(fields: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Returns the schema of the answer's text, or of the forced tool, Nova's only way to follow a schema."""
    form, config = fields.get("outputConfig", {}).get("textFormat"), fields.get("toolConfig", {})
    if form is None:
        forced = config.get("toolChoice", {}).get("tool", {}).get("name")
        specs = [tool["toolSpec"] for tool in config.get("tools", ()) if "toolSpec" in tool]
        return next((spec["inputSchema"]["json"] for spec in specs if spec["name"] == forced), None)
    assert form["type"] == "json_schema"
    schema: Mapping[str, Any] = json.loads(form["structure"]["jsonSchema"]["schema"])
    return schema


def _signatures(blocks: list[dict[str, Any]]) -> Iterator[str]:
    for block in blocks:
        thought = block.get("reasoningContent", {}).get("reasoningText", {})
        if "signature" in thought:
            yield thought["signature"]


def _secret(headers: Mapping[str, str]) -> str:
    """Returns a signed request's key id, or the bearer token."""
    authorization = headers["authorization"]
    if authorization.startswith("Bearer "):
        return authorization.removeprefix("Bearer ")
    found = _AUTHORIZATION.fullmatch(authorization)
    assert found, "not signed"
    assert re.fullmatch(r"\d{8}T\d{6}Z", headers["x-amz-date"])
    return found.group(1)


FAKE = FakeBedrock()
