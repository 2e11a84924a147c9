"""The body of a chat-completion request: its fields and their bounds (docs/chat-completions.md#the-request).

Decoding is validation. Fields that are not named here pass through to providers of the same dialect.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import msgspec

from core.errors import ValidationError
from gateway.protocol.message_sizes import MAX_MESSAGE_BYTES, check_message_sizes
from integrations.providers.common.search import find

MAX_MESSAGES = 1000
MAX_FALLBACK_MODELS = 5

AUTO = "auto"
"""The model name that stands for the models that the project prefers."""

Number = Annotated[float, msgspec.Meta(ge=-2.0, le=2.0)]
Tokens = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
# Many caches of the gateway keep names of models, so names are bounded; the longest known ones, ARNs of Bedrock, have
# some 150 characters.
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=512)]
# Vendors extend the sets of these values: unknown ones pass, and an adapter that has to translate one refuses it.
Word = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
NULL = b"null"
JsonObject = dict[str, msgspec.Raw]


class Url(msgspec.Struct):
    url: str


class ContentPart(msgspec.Struct):
    """A part of a message. `type` names the field that carries its content; other types of the OpenAI dialect pass.
    `trust` marks the text of a document (docs/guardrails.md#documents-in-messages), and is sent to no provider."""

    type: str
    trust: Literal["untrusted"] | None = None
    text: str | None = None
    image_url: Url | None = None
    document_url: Url | None = None


class Message(msgspec.Struct):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[ContentPart] | None = None
    name: str | None = None
    tool_calls: list[JsonObject] | None = None
    tool_call_id: str | None = None


class ResponseFormat(msgspec.Struct):
    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonObject | None = None


class Thinking(msgspec.Struct):
    type: Word
    budget_tokens: int | None = None


class ProviderPreferences(msgspec.Struct):
    order: list[str] | None = None
    only: list[str] | None = None
    ignore: list[str] | None = None
    allow_fallbacks: bool | None = None
    sort: Literal["latency"] | None = None


class ChatCompletionRequest(msgspec.Struct):
    model: Name
    messages: list[Message]
    temperature: Annotated[float, msgspec.Meta(ge=0.0, le=2.0)] | None = None
    max_tokens: Tokens | None = None
    max_completion_tokens: Tokens | None = None
    top_p: Annotated[float, msgspec.Meta(ge=0.0, le=1.0)] | None = None
    n: Annotated[int, msgspec.Meta(ge=1, le=10)] | None = None
    stream: bool | None = None
    stop: str | list[str] | None = None
    frequency_penalty: Number | None = None
    presence_penalty: Number | None = None
    user: str | None = None
    seed: int | None = None
    tools: list[JsonObject] | None = None
    tool_choice: str | JsonObject | None = None
    response_format: ResponseFormat | None = None
    thinking: Thinking | None = None
    reasoning_effort: Word | None = None
    models: list[Name] | None = None
    provider: ProviderPreferences | None = None
    prompt_config: str | None = None
    prompt_variables: dict[str, Any] | None = None


class LazyFields(Mapping[str, Any]):
    """The body as plain Python values, decoded on first use, because most requests are forwarded as bytes."""

    __slots__ = ("_body", "_fields")

    def __init__(self, body: bytes, fields: Mapping[str, Any] | None = None) -> None:
        self._body = body
        self._fields = fields

    def _decoded(self) -> Mapping[str, Any]:
        if self._fields is None:
            try:
                self._fields = _fields_decoder.decode(self._body)
            except msgspec.ValidationError:
                # The only such error at this point is a number beyond a double (1e400) in a field that passes through.
                raise ValidationError("The request body holds a number that is out of range") from None
            except RecursionError:
                raise nested_too_deeply() from None
        return self._fields

    def __getitem__(self, key: str) -> Any:
        return self._decoded()[key]

    def get(self, key: str, default: Any = None) -> Any:
        # Adapters ask for many absent fields, for which `Mapping.get` would go through __getitem__ and an exception.
        return self._decoded().get(key, default)

    def __iter__(self) -> Iterator[str]:
        return iter(self._decoded())

    def __len__(self) -> int:
        return len(self._decoded())


def nested_too_deeply() -> ValidationError:
    return ValidationError("The request body is nested too deeply")


# The values of these fields stay JSON in a request, which no conversion makes of values.
_KEPT_AS_JSON = frozenset({"response_format", "tool_choice", "tools"})
_fields_decoder = msgspec.json.Decoder(dict[str, Any])
_decoder = msgspec.json.Decoder(ChatCompletionRequest)

_AT = re.compile(r" - at `\$\.?(?P<path>[^`]*)`$")
_MISSING = re.compile(r"^Object missing required field `(?P<field>[^`]+)`")
_STREAMS = re.compile(rb'"stream"\s*:\s*true')
_NEAR_AN_END = 1024
_INDEX = re.compile(r"\[\.\.\.\]")


def decode_request(body: bytes) -> ChatCompletionRequest:
    """Returns the validated request. Raises ValidationError (400), whose message names the field."""
    try:
        if not body.isascii():
            # The decoder does not look at the characters of fields that it skips.
            body.decode("utf-8")
        request = _decoder.decode(body)
    except msgspec.ValidationError as error:
        raise explain(str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ValidationError("The request body is not valid JSON", code="invalid_json") from None
    _check(request, body)
    return request


def convert_request(fields: Mapping[str, Any], body: bytes) -> ChatCompletionRequest:
    if not _KEPT_AS_JSON.isdisjoint(fields):
        return decode_request(body)
    try:
        request = msgspec.convert(fields, ChatCompletionRequest)
    except msgspec.ValidationError:
        # The decoder has the last word: some values it takes only as JSON, and its errors are those that clients see.
        return decode_request(body)
    _check(request, body)
    return request


def streams(body: bytes) -> bool:
    """Returns whether the request asks for a stream. It may wrongly return False, never wrongly True.

    Clients write the field before or after their messages, so the middle of a long body is not searched.
    """
    if len(body) > 2 * _NEAR_AN_END:
        body = body[:_NEAR_AN_END] + b"," + body[-_NEAR_AN_END:]
    at = find(body, b'"stream"')
    return at >= 0 and _STREAMS.match(body, at) is not None


def is_plain(request: ChatCompletionRequest, body: bytes) -> bool:
    """Returns whether the request has neither `thinking` nor a field of the gateway's own.

    No provider gets these as they are. It may wrongly return False, never wrongly True.
    """
    return (
        request.models is None
        and request.provider is None
        and request.prompt_config is None
        and request.prompt_variables is None
        and request.thinking is None
        # The value of a field that is null is that of an absent one.
        and find(body, NULL) < 0
    )


def _check(request: ChatCompletionRequest, body: bytes) -> None:
    _check_messages(request.messages)
    if len(body) > MAX_MESSAGE_BYTES:
        check_message_sizes(body)
    if request.models is not None and len(request.models) > MAX_FALLBACK_MODELS:
        raise ValidationError(f"models: at most {MAX_FALLBACK_MODELS} fallback models are allowed")
    if isinstance(request.tool_choice, str) and request.tool_choice not in ("none", "auto", "required"):
        raise ValidationError("tool_choice: expected none, auto, required or a specific function")


def explain(problem: str) -> ValidationError:
    at = _AT.search(problem)
    path = _INDEX.sub("[]", at["path"]) if at else ""
    reason = problem[: at.start()] if at else problem
    missing = _MISSING.match(reason)
    if missing:
        field = f"{path}.{missing['field']}" if path else missing["field"]
        return ValidationError(f"{field}: this field is required", code="missing_field")
    if not path:
        return ValidationError("The request body has to be a JSON object", code="invalid_json")
    return ValidationError(f"{path}: {reason[:1].lower()}{reason[1:]}")


def _check_messages(messages: list[Message]) -> None:
    if not messages:
        raise ValidationError("messages: at least one message is required", code="empty_messages")
    if len(messages) > MAX_MESSAGES:
        raise ValidationError(
            f"messages: {len(messages)} messages, at most {MAX_MESSAGES} are allowed", code="too_many_messages"
        )
    for index, message in enumerate(messages):
        content = message.content
        if content is None:
            if message.role not in ("assistant", "function"):
                raise ValidationError(f"messages[{index}].content: this field is required", code="missing_field")
        elif content.__class__ is list:
            _check_parts(index, content)
        if message.role == "tool" and message.tool_call_id is None:
            raise ValidationError(f"messages[{index}].tool_call_id: this field is required", code="missing_field")


def _check_parts(index: int, parts: list[ContentPart]) -> None:
    for position, part in enumerate(parts):
        if part.type in ("text", "image_url", "document_url") and getattr(part, part.type) is None:
            raise ValidationError(
                f"messages[{index}].content[{position}].{part.type}: this field is required", code="missing_field"
            )
