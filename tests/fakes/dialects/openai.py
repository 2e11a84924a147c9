"""A fake of OpenAI's dialect as OpenAI, Azure and each compatible vendor speak it: one class, with the differences as
data.

The differences come from the vendors' documentation and recordings, not from the adapters' own table.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

from integrations.providers.base import Credentials
from integrations.providers.openai.compatible import DIALECTS
from integrations.providers.usage import Usage
from tests.fakes.dialects.rules import openai as rules
from tests.fakes.dialects.rules import thinkers, vllm
from tests.fakes.dialects.rules.table import Request, Table
from tests.fakes.dialects.story import Call, Can, ReadRequest, Reply, Story, Streamed

CREATED = 1_760_000_000
_JSON = {"content-type": "application/json"}
_EVENTS = {"content-type": "text/event-stream; charset=utf-8"}
_PARAMETERS_OF_THE_GATEWAY = {"models", "provider", "prompt_config", "prompt_variables"}
_MESSAGE_FIELDS = {"role", "content", "name", "tool_calls", "tool_call_id", "function_call", "refusal", "audio"}


@dataclass(frozen=True)
class Vendor:
    """One vendor's differences from OpenAI.

    `path` is the API's, below the integration's base address. `reasoning` is the field of its reasoning, `usage_in` the
    stream chunk with the usage, `error` the shape of an error body. `message_fields` are accepted beside OpenAI's; None
    accepts all. `rules` lists what else the vendor refuses.
    """

    can: Can
    path: str = "/v1"
    key: str = "sk-canary-4f9a1c77e2"
    reasoning: Literal["", "reasoning", "reasoning_content", "details", "both"] = ""
    usage_in: Literal["own", "finish", "x_groq", "every"] = "own"
    error: Literal["openai", "text", "bare", "xai", "openrouter"] = "openai"
    message_fields: frozenset[str] | None = frozenset()
    developer: bool = False
    image_addresses: bool = True
    many: bool = True
    rules: Table | None = None


_NO_DOCUMENTS = Can(documents=False)
_SERVER = Vendor(_NO_DOCUMENTS, reasoning="reasoning_content", message_fields=None)
_ROUTER = Can(signatures=True, routes=True)
_ROUTER_ONLY = Can(documents=False, signatures=True, routes=True)
VENDORS: Mapping[str, Vendor] = {
    "openai": Vendor(Can(reasoning=False), developer=True, rules=rules.CHAT),
    "azure_openai": Vendor(
        Can(reasoning=False), path="", key="canary0azure0key0c41d8", developer=True, rules=rules.CHAT
    ),
    "groq": Vendor(
        _NO_DOCUMENTS,
        path="/openai/v1",
        key="gsk_canary8f2a9c",
        reasoning="reasoning",
        usage_in="x_groq",
        message_fields=frozenset({"reasoning"}),
        many=False,
    ),
    "deepseek": Vendor(
        Can(images=False, documents=False, schema=False),
        reasoning="reasoning_content",
        usage_in="finish",
        message_fields=frozenset({"reasoning_content"}),
        many=False,
        rules=thinkers.DEEPSEEK,
    ),
    "xai": Vendor(
        _NO_DOCUMENTS,
        key="xai-canary8f2a9c77",
        reasoning="reasoning_content",
        error="xai",
        message_fields=frozenset({"reasoning", "reasoning_content"}),
        developer=True,
    ),
    "openrouter": Vendor(
        _ROUTER,
        path="/api/v1",
        key="sk-or-v1-canary8f2a9c",
        reasoning="both",
        error="openrouter",
        message_fields=None,
        developer=True,
    ),
    "together": Vendor(_NO_DOCUMENTS, reasoning="reasoning", usage_in="finish", message_fields=None),
    "fireworks": Vendor(
        _NO_DOCUMENTS, path="/inference/v1", key="fw_canary8f2a9c77", reasoning="reasoning_content", message_fields=None
    ),
    "perplexity": Vendor(Can(reasoning=False), path="", key="pplx-canary8f2a9c77", usage_in="every", many=False),
    "cerebras": Vendor(
        _NO_DOCUMENTS,
        key="csk-canary8f2a9c77",
        reasoning="reasoning",
        error="bare",
        message_fields=frozenset({"reasoning"}),
        many=False,
    ),
    "huggingface": Vendor(
        _NO_DOCUMENTS, key="hf_canary8f2a9c77ab", reasoning="reasoning", error="text", message_fields=None
    ),
    "zai": Vendor(
        Can(documents=False, schema=False),
        path="/api/paas/v4",
        key="canary0zai0key.8f2a9c",
        reasoning="reasoning_content",
        usage_in="finish",
        message_fields=frozenset({"reasoning_content"}),
        many=False,
    ),
    "snowflake": Vendor(
        Can(documents=False, signatures=True), path="/api/v2/cortex/v1", reasoning="details", message_fields=None
    ),
    "ollama": Vendor(
        _NO_DOCUMENTS,
        reasoning="reasoning",
        message_fields=frozenset({"reasoning", "reasoning_content"}),
        image_addresses=False,
        many=False,
    ),
    "moonshot": Vendor(
        _NO_DOCUMENTS,
        reasoning="reasoning_content",
        message_fields=frozenset({"reasoning_content"}),
        rules=thinkers.MOONSHOT,
    ),
    "xiaomi_mimo": Vendor(
        _NO_DOCUMENTS,
        reasoning="reasoning_content",
        message_fields=frozenset({"reasoning_content"}),
        rules=thinkers.MIMO,
    ),
    "minimax": Vendor(_NO_DOCUMENTS, reasoning="reasoning_content", message_fields=None, many=False),
    "bigmodel": Vendor(
        Can(documents=False, schema=False),
        path="/api/paas/v4",
        reasoning="reasoning_content",
        usage_in="finish",
        message_fields=frozenset({"reasoning_content"}),
        many=False,
    ),
    "github": Vendor(
        Can(documents=False, reasoning=False), path="/inference", key="github_pat_canary8f2a9c", developer=True
    ),
    "vercel_ai_gateway": Vendor(_ROUTER_ONLY, reasoning="both", message_fields=None),
    "poe": Vendor(_NO_DOCUMENTS, reasoning="reasoning_content", message_fields=None, many=False),
    "vllm": Vendor(Can(), reasoning="reasoning_content", message_fields=None, developer=True, rules=vllm.CHAT),
    "openai_compatible": Vendor(
        Can(), reasoning="reasoning_content", message_fields=None, developer=True, rules=vllm.CHAT
    ),
    "sandbox": Vendor(Can(), reasoning="reasoning_content", message_fields=None, developer=True),
}


class OpenAIFake:
    """A fake of one vendor (see `FakeDialect`). A provider missing from `VENDORS` is taken to be close to OpenAI."""

    def __init__(self, provider: str) -> None:
        self.provider = provider
        self.vendor = VENDORS.get(provider, _SERVER)
        self.can = self.vendor.can

    def credentials(self, base_url: str) -> Credentials:
        return Credentials(1, self.provider, f"{base_url}{self.vendor.path}", self.vendor.key)

    def whole(self, story: Story) -> Reply:
        message: dict[str, Any] = {"role": "assistant", "content": _content(story), **self._reasoning(story)}
        if story.calls:
            message["tool_calls"] = [_call(call) for call in story.calls]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": story.finish}
        answer = {
            "id": f"chatcmpl-{story.id}",
            "object": "chat.completion",
            "created": CREATED,
            "model": story.model,
            "choices": [choice],
            "usage": _usage(story.usage),
        }
        return Reply(200, _JSON, json.dumps(answer, ensure_ascii=False).encode())

    def stream(self, story: Story) -> Streamed:
        usage = _usage(story.usage)
        ending: dict[str, Any] = {}
        if self.vendor.usage_in == "finish":
            ending = {"usage": usage}
        elif self.vendor.usage_in == "x_groq":
            ending = {"x_groq": {"id": "req_fake", "usage": usage}}
        more: dict[str, Any] = {"usage": usage} if self.vendor.usage_in == "every" else {}
        events = [
            *(_chunk(story, delta, **more) for delta in self._deltas(story)),
            _chunk(story, {}, finish=story.finish, **more, **ending),
        ]
        if self.vendor.usage_in == "own":
            events.append(_chunk(story, None, usage=usage))
        return Streamed(_EVENTS, (*events, b"data: [DONE]\n\n"))

    def failure(self, status: int, message: str, *, retry_after: int | None = None) -> Reply:
        headers = dict(_JSON) if retry_after is None else {**_JSON, "retry-after": str(retry_after)}
        return Reply(status, headers, json.dumps(self._error(status, message), ensure_ascii=False).encode())

    def stream_failure(self, story: Story, message: str) -> Streamed:
        deltas = self._deltas(story) if story != Story() else iter([{"role": "assistant", "content": ""}])
        error = {"error": {"message": message, "type": "server_error", "param": None, "code": None}}
        name = b"event: error\n" if self.vendor.usage_in == "x_groq" else b""
        return Streamed(_EVENTS, (*(_chunk(story, delta) for delta in deltas), name + _event(error)))

    def read(self, path: str, headers: Mapping[str, str], body: bytes) -> ReadRequest:
        fields = json.loads(body)
        assert not _PARAMETERS_OF_THE_GATEWAY & fields.keys(), "a field of the gateway"
        assert self.vendor.many or fields.get("n") in (None, 1), "n has to be 1"
        assert headers["content-type"] == "application/json"
        model = self._model(path, fields)
        if self.vendor.rules is not None:
            self.vendor.rules.check(Request(fields, model, headers))
        reader = _Reader(self.vendor)
        for message in fields["messages"]:
            reader.read(message)
        return ReadRequest(
            model=model,
            stream=fields.get("stream") is True,
            system="\n".join(reader.system),
            turns=tuple(reader.turns),
            images=tuple(reader.images),
            documents=tuple(reader.documents),
            tools=tuple(tool["function"]["name"] for tool in fields.get("tools") or ()),
            calls=tuple(reader.calls),
            results=tuple(reader.results),
            tool_choice=_tool_choice(fields.get("tool_choice")),
            schema=self._schema(fields.get("response_format")),
            stop=_stop(fields.get("stop")),
            max_tokens=fields.get("max_completion_tokens") or fields.get("max_tokens"),
            temperature=fields.get("temperature"),
            top_p=fields.get("top_p"),
            signatures=tuple(reader.signatures),
            secret=self._secret(headers),
        )

    def _deltas(self, story: Story) -> Iterator[dict[str, Any]]:
        yield {"role": "assistant", "content": ""}
        for piece in _cut(story.reasoning, story.pieces):
            yield self._reasoning(Story(reasoning=piece))
        if story.signature and self.can.signatures:
            yield {"content": "", "reasoning_details": [_detail("", story.signature)]}
        for piece in _cut(story.text, story.pieces):
            yield {"content": piece}
        for index, call in enumerate(story.calls):
            arguments = json.dumps(call.arguments, ensure_ascii=False)
            yield {"tool_calls": [{**_call(call), "index": index, "function": {"name": call.name, "arguments": ""}}]}
            for piece in _cut(arguments, story.pieces):
                yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}

    def _reasoning(self, story: Story) -> dict[str, Any]:
        if not story.reasoning:
            return {}
        where = self.vendor.reasoning
        fields: dict[str, Any] = {}
        if where in ("reasoning", "both"):
            fields["reasoning"] = story.reasoning
        if where == "reasoning_content":
            fields["reasoning_content"] = story.reasoning
        if where in ("details", "both"):
            fields["reasoning_details"] = [_detail(story.reasoning, story.signature)]
        return fields

    def _error(self, status: int, message: str) -> Any:
        error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
        shapes: dict[str, Any] = {
            "openai": {"error": error},
            "text": {"error": message},
            "bare": error,
            "xai": {"code": "The request failed", "error": message},
            "openrouter": {"error": {"message": message, "code": status}},
        }
        return shapes[self.vendor.error]

    def _model(self, path: str, fields: Mapping[str, Any]) -> str:
        where = urlsplit(path)
        if self.provider != "azure_openai":
            assert where.path == f"{self.vendor.path}/chat/completions", path
            return str(fields["model"])
        deployment, _, rest = where.path.removeprefix("/openai/deployments/").partition("/")
        assert rest == "chat/completions", path
        assert where.query.startswith("api-version=20"), path
        return deployment

    def _secret(self, headers: Mapping[str, str]) -> str:
        if self.provider == "azure_openai":
            return headers["api-key"]
        scheme, _, secret = headers["authorization"].partition(" ")
        assert scheme == "Bearer"
        return secret

    def _schema(self, response_format: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        if response_format is None or response_format["type"] != "json_schema":
            return None
        assert self.can.schema, "no JSON schema here"
        schema: Mapping[str, Any] = response_format["json_schema"]["schema"]
        return schema


@dataclass
class _Reader:
    vendor: Vendor
    system: list[str] = field(default_factory=list)
    turns: list[tuple[str, str]] = field(default_factory=list)
    images: list[tuple[str, bytes | str]] = field(default_factory=list)
    documents: list[tuple[str, bytes | str]] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    results: list[tuple[str, str]] = field(default_factory=list)
    signatures: list[str] = field(default_factory=list)

    def read(self, message: Mapping[str, Any]) -> None:
        role, text = message["role"], self._text(message.get("content"), message["role"])
        self._check_fields(message)
        if role in ("system", "developer"):
            assert role == "system" or self.vendor.developer, "an unknown role"
            self.system.append(text)
        elif role == "tool":
            self.results.append((message["tool_call_id"], text))
        else:
            assert role in ("user", "assistant"), role
            self._read_turn(role, text, message)

    def _read_turn(self, role: str, text: str, message: Mapping[str, Any]) -> None:
        calls = message.get("tool_calls") or []
        for call in calls:
            assert call["type"] == "function"
            function = call["function"]
            self.calls.append(Call(call["id"], function["name"], json.loads(function["arguments"] or "{}")))
        details = message.get("reasoning_details") or []
        self.signatures += [detail["signature"] for detail in details if detail.get("signature")]
        if text or not calls:
            self.turns.append((role, text))

    def _check_fields(self, message: Mapping[str, Any]) -> None:
        if self.vendor.message_fields is None:
            return
        unknown = message.keys() - _MESSAGE_FIELDS - self.vendor.message_fields
        assert not unknown, f"property {', '.join(sorted(unknown))} is unsupported"

    def _text(self, content: Any, role: str) -> str:
        if content is None or isinstance(content, str):
            return content or ""
        texts = []
        for part in content:
            if part["type"] == "text":
                texts.append(part["text"])
            else:
                assert role != "tool" or self.vendor.message_fields is None, "tool results are text"
                self._read_medium(part)
        return "".join(texts)

    def _read_medium(self, part: Mapping[str, Any]) -> None:
        match part["type"]:
            case "image_url":
                assert self.vendor.can.images, "no images here"
                url = part["image_url"]["url"]
                assert url.startswith("data:") or self.vendor.image_addresses, "images as data only"
                self.images.append(_medium(url))
            case "file":
                self.documents.append(_medium(part["file"]["file_data"]))
            case "document_url":
                self.documents.append(_medium(part["document_url"]["url"]))
            case "file_url":
                self.documents.append(_bare_medium(part["file_url"]["url"]))


def _medium(url: str) -> tuple[str, bytes | str]:
    if not url.startswith("data:"):
        return "url", url
    head, _, data = url[5:].partition(",")
    try:
        return head.partition(";")[0], base64.b64decode(data, validate=True)
    except ValueError as error:
        raise AssertionError("no base64") from error


def _bare_medium(url: str) -> tuple[str, bytes | str]:
    """Returns Perplexity's form of a document: an address, or base64 without a type."""
    return ("url", url) if "://" in url else ("application/pdf", base64.b64decode(url, validate=True))


def _content(story: Story) -> str | None:
    return story.text or (None if story.calls else "")


def _call(call: Call) -> dict[str, Any]:
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _detail(text: str, signature: str) -> dict[str, Any]:
    fields = {"type": "reasoning.text", "text": text, "format": "anthropic-claude-v1", "index": 0}
    return {**fields, "signature": signature} if signature else fields


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def _chunk(story: Story, delta: Mapping[str, Any] | None, *, finish: str | None = None, **more: Any) -> bytes:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]
    return _event(
        {
            "id": f"chatcmpl-{story.id}",
            "object": "chat.completion.chunk",
            "created": CREATED,
            "model": story.model,
            "choices": choices,
            **more,
        }
    )


def _event(fields: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(fields, ensure_ascii=False).encode() + b"\n\n"


def _cut(text: str, count: int) -> Iterator[str]:
    size = -(-len(text) // count) or 1
    for start in range(0, len(text), size):
        yield text[start : start + size]


def _tool_choice(choice: Any) -> str:
    if choice is None or isinstance(choice, str):
        return choice or ""
    return f"function:{choice['function']['name']}" if choice["type"] == "function" else str(choice["type"])


def _stop(stop: str | list[str] | None) -> tuple[str, ...]:
    return (stop,) if isinstance(stop, str) else tuple(stop or ())


FAKES: dict[str, OpenAIFake] = {
    provider: OpenAIFake(provider) for provider in dict.fromkeys((*VENDORS, *(row.provider for row in DIALECTS)))
}
