"""A fake of Gemini's generateContent and streamGenerateContent, as the Gemini API and as Vertex AI serve them."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from integrations.providers.base import Credentials
from integrations.providers.google.field_names import camel
from tests.fakes.dialects.rules import google as rules
from tests.fakes.dialects.rules.table import Request, Table
from tests.fakes.dialects.story import Call, Can, ReadRequest, Reply, Story, Streamed

_JSON = "application/json; charset=UTF-8"
# This value stands for the signature of a call that Gemini did not make.
_DUMMY = "skip_thought_signature_validator"
_FINISH = {"stop": "STOP", "tool_calls": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY"}
_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_METHOD = r":(?P<method>generateContent|streamGenerateContent)(?:\?(?P<query>.*))?$"
_GEMINI_PATH = re.compile(r"^(?:/v1(?:beta)?)?/models/(?P<model>[^/:?]+)" + _METHOD)
_VERTEX_PATH = re.compile(
    r"^(?:/v1(?:beta1)?)?(?:/projects/[^/]+/locations/[^/]+)?/publishers/google/models/(?P<model>[^/:?]+)" + _METHOD
)
_CAN = Can(signatures=True)

# The values of these fields are the client's data, without Google's field names in them.
DATA = ("args", "response", "labels", "fileSearch", "googleSearch")
SCHEMAS = ("parameters", "parametersJsonSchema", "responseSchema", "responseJsonSchema")


def camelled(value: Any) -> Any:
    if isinstance(value, list):
        return [camelled(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    return {camel(name): held if camel(name) in (*DATA, *SCHEMAS) else camelled(held) for name, held in value.items()}


@dataclass
class GoogleFake:
    provider: str
    path: re.Pattern[str]
    key_header: str
    rules: Table
    can: Can = _CAN

    def credentials(self, base_url: str) -> Credentials:
        if self.provider == "google":
            return Credentials(1, "google", base_url, "AIzaSyFakeFakeFakeFakeFakeFakeFakeFake00")
        place = {"project": "fake-project", "location": "europe-west4"}
        return Credentials(1, "google_vertex", base_url, "ya29.fake-access-token", place)

    def whole(self, story: Story) -> Reply:
        candidate = {
            "content": {"parts": _parts(story), "role": "model"},
            "finishReason": _FINISH[story.finish],
            "index": 0,
        }
        body = {"candidates": [candidate], **_top(story, usage=_usage(story))}
        return Reply(200, {"content-type": _JSON}, json.dumps(body, indent=2, ensure_ascii=False).encode())

    def stream(self, story: Story) -> Streamed:
        *before, (last, _) = list(_deltas(story))
        events = [_event(_delta(story, parts, usage=usage)) for parts, usage in before]
        end = _delta(story, last, usage=_usage(story))
        end["candidates"][0]["finishReason"] = _FINISH[story.finish]
        return Streamed({"content-type": "text/event-stream"}, (*events, _event(end)))

    def failure(self, status: int, message: str, *, retry_after: int | None = None) -> Reply:
        body = json.dumps(_error(status, message, retry_after), indent=2).encode()
        return Reply(status, {"content-type": _JSON}, body)

    def stream_failure(self, story: Story, message: str) -> Streamed:
        has_output = story.text or story.reasoning or story.calls
        events = [_event(_delta(story, parts, usage=usage)) for parts, usage in _deltas(story)] if has_output else []
        return Streamed({"content-type": "text/event-stream"}, (*events, _event(_error(503, message, None))))

    def read(self, path: str, headers: Mapping[str, str], body: bytes) -> ReadRequest:
        found = self.path.match(path)
        assert found is not None, f"no such path: {path}"
        assert headers.get("content-type", "").startswith("application/json")
        is_stream = found["method"] == "streamGenerateContent"
        assert not is_stream or found["query"] == "alt=sse", "the fake streams server-sent events only"
        try:
            fields = camelled(json.loads(body))
            self.rules.check(Request(fields, found["model"], headers))
            return _read_request(fields, found["model"], is_stream, self._secret(headers))
        except (KeyError, TypeError, ValueError) as problem:
            raise AssertionError(f"not the shape of a request: {problem!r}") from problem

    def _secret(self, headers: Mapping[str, str]) -> str:
        value = headers.get(self.key_header, "")
        assert value, f"{self.key_header} is missing"
        return value.removeprefix("Bearer ")


FAKE = GoogleFake("google", _GEMINI_PATH, "x-goog-api-key", rules.GEMINI)
VERTEX_FAKE = GoogleFake("google_vertex", _VERTEX_PATH, "authorization", rules.VERTEX)


def _top(story: Story, *, usage: Mapping[str, Any]) -> dict[str, Any]:
    return {"usageMetadata": dict(usage), "modelVersion": story.model, "responseId": f"{story.id}-response-1"}


def _usage(story: Story) -> dict[str, int]:
    usage = story.usage
    counts = {
        "promptTokenCount": usage.prompt_tokens,
        "candidatesTokenCount": usage.completion_tokens - usage.reasoning_tokens,
        "thoughtsTokenCount": usage.reasoning_tokens,
        "cachedContentTokenCount": usage.cache_read_tokens,
    }
    # Protocol buffers leave out fields that are zero.
    given = {name: count for name, count in counts.items() if count}
    return {**given, "totalTokenCount": usage.prompt_tokens + usage.completion_tokens}


def _parts(story: Story) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    if story.reasoning:
        parts.append({"text": story.reasoning, "thought": True})
    if story.text:
        parts.append({"text": story.text})
    parts += _calls(story)
    if story.signature and not story.calls:
        if not story.text:
            parts.append({"text": ""})
        parts[-1]["thoughtSignature"] = story.signature
    return parts


def _calls(story: Story) -> list[dict[str, Any]]:
    """Of parallel calls only the first is signed."""
    calls = [_call(call) for call in story.calls]
    if calls and story.signature:
        calls[0]["thoughtSignature"] = story.signature
    return calls


def _call(call: Call) -> dict[str, Any]:
    return {"functionCall": {"name": call.name, "args": dict(call.arguments), **({"id": call.id} if call.id else {})}}


def _deltas(story: Story) -> Iterator[tuple[list[dict[str, Any]], dict[str, int]]]:
    counts = {"promptTokenCount": story.usage.prompt_tokens, "totalTokenCount": story.usage.prompt_tokens}
    for piece in _cut(story.reasoning, story.pieces):
        yield [{"text": piece, "thought": True}], counts
    for piece in _cut(story.text, story.pieces):
        yield [{"text": piece}], counts
    if story.calls:
        yield _calls(story), counts
    end: dict[str, Any] = {"text": ""}
    if story.signature and not story.calls:
        end["thoughtSignature"] = story.signature
    yield [end], counts


def _cut(text: str, pieces: int) -> list[str]:
    size = max(1, -(-len(text) // pieces))
    return [text[start : start + size] for start in range(0, len(text), size)]


def _delta(story: Story, parts: Sequence[Mapping[str, Any]], *, usage: Mapping[str, Any]) -> dict[str, Any]:
    return {"candidates": [{"content": {"parts": parts, "role": "model"}, "index": 0}], **_top(story, usage=usage)}


def _event(data: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(data, ensure_ascii=False).encode() + b"\r\n\r\n"


def _error(status: int, message: str, retry_after: int | None) -> dict[str, Any]:
    error: dict[str, Any] = {"code": status, "message": message, "status": _STATUS.get(status, "UNKNOWN")}
    if retry_after is not None:
        error["details"] = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{retry_after}s"}]
    return {"error": error}


def _read_request(body: dict[str, Any], model: str, is_stream: bool, secret: str) -> ReadRequest:
    config = body.get("generationConfig", {})
    contents = body["contents"]
    parts = [part for content in contents for part in content["parts"]]
    files = list(_files(parts))
    return ReadRequest(
        model=model,
        stream=is_stream,
        system="\n".join(part["text"] for part in body.get("systemInstruction", {}).get("parts", [])),
        turns=tuple(_turns(contents)),
        images=tuple((name, data) for kind, name, data in files if kind.startswith("image/")),
        documents=tuple((name, data) for kind, name, data in files if not kind.startswith("image/")),
        tools=tuple(_functions(body)),
        calls=tuple(_history_call(part["functionCall"]) for part in parts if "functionCall" in part),
        results=tuple(_result(part["functionResponse"]) for part in parts if "functionResponse" in part),
        tool_choice=_choice(body),
        schema=_schema(config),
        stop=tuple(config.get("stopSequences", ())),
        max_tokens=config.get("maxOutputTokens"),
        temperature=config.get("temperature"),
        top_p=config.get("topP"),
        signatures=tuple(sign for part in parts if (sign := part.get("thoughtSignature")) and sign != _DUMMY),
        secret=secret,
    )


def _turns(contents: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    for content in contents:
        text = "".join(part["text"] for part in content["parts"] if "text" in part and not part.get("thought"))
        if text:
            yield ("assistant" if content["role"] == "model" else "user"), text


def _files(parts: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str, bytes | str]]:
    """Yields each file's kind, media type, and bytes or address, as in `ReadRequest`."""
    for part in parts:
        if (blob := part.get("inlineData")) is not None:
            yield blob["mimeType"], blob["mimeType"], base64.b64decode(blob["data"], validate=True)
        if (file := part.get("fileData")) is not None:
            yield file.get("mimeType", ""), "url", file["fileUri"]
        yield from _files(part.get("functionResponse", {}).get("parts", ()))


def _functions(body: Mapping[str, Any]) -> Iterator[str]:
    for tool in body.get("tools", ()):
        for function in tool.get("functionDeclarations", ()):
            yield function["name"]


def _history_call(call: Mapping[str, Any]) -> Call:
    assert isinstance(call.get("args", {}), dict)
    return Call(call.get("id", ""), call["name"], call.get("args", {}))


def _result(result: Mapping[str, Any]) -> tuple[str, str]:
    response = result["response"]
    assert isinstance(response, dict)
    text = response.get("result", response.get("error"))
    return result.get("id") or result["name"], text if isinstance(text, str) else json.dumps(response)


def _choice(body: Mapping[str, Any]) -> str:
    config = body.get("toolConfig", {}).get("functionCallingConfig", {})
    allowed = config.get("allowedFunctionNames", [])
    if config.get("mode") == "ANY" and len(allowed) == 1:
        return f"function:{allowed[0]}"
    return {"NONE": "none", "AUTO": "auto", "ANY": "required", "VALIDATED": "auto"}.get(config.get("mode"), "")


def _schema(config: Mapping[str, Any]) -> Mapping[str, Any] | None:
    schema: Mapping[str, Any] | None = config.get("responseJsonSchema", config.get("responseSchema"))
    return schema
