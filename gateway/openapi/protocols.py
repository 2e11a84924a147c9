from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from analytics.request_log.record import Operation
from analytics.telemetry.operation_names import operation_names
from core.openapi.failures import ErrorBody
from core.openapi.handwritten import failures, optional_parameter
from core.openapi.operations import JSON
from core.openapi.shapes import reference
from gateway.openapi.answers import (
    ContentAnswer,
    ContentCount,
    ContentEmbedding,
    ContentEmbeddings,
    Embeddings,
    Images,
    MessageEvent,
    MessageObject,
    Moderation,
    Ranking,
    ResponseEvent,
    ResponseObject,
    TextCompletion,
    TokenCount,
    Transcription,
)
from gateway.openapi.parts import (
    FAILURES,
    SECURITY,
    STREAM,
    GoogleErrorBody,
    MessagesErrorBody,
    request_headers,
    response_headers,
)
from gateway.openapi.requests import (
    BatchEmbedRequest,
    ContentCountRequest,
    ContentRequest,
    EmbedRequest,
    MessageRequest,
    ResponseRequest,
    TextCompletionRequest,
    TokenCountRequest,
)
from gateway.protocol.completion_shapes import ChatCompletion, ChatCompletionChunk
from gateway.protocol.headers import MAX_VARIABLE_CHARACTERS, PREFIX
from gateway.protocol.wire import MAX_MESSAGES, ChatCompletionRequest
from gateway.surfaces.completions.surface import MAX_PROMPTS
from gateway.surfaces.operations import (
    MAX_DOCUMENTS,
    MAX_INPUTS,
    MEDIA_TYPES,
    TRANSCRIPT_TYPES,
    EmbeddingRequest,
    ImageRequest,
    ModerationRequest,
    RerankRequest,
    SpeechRequest,
)

_FORM = "multipart/form-data"
_TEXT = "text/plain"

_OPENAI = "https://platform.openai.com/docs/api-reference"
_ANTHROPIC = "https://platform.claude.com/docs/en/api"
_GOOGLE = "https://ai.google.dev/api"

_VARIABLES = f"""

A header `{PREFIX}var-<name>` is a variable of the prompt's template, at most {MAX_VARIABLE_CHARACTERS} characters long.
`-` stands for `_`: `{PREFIX}var-user-name` is `user_name`. `prompt_variables` in the body wins."""
_TRANSLATED = """\
A provider that speaks this protocol gets the client's bytes, and its answer comes back as it came. For all others the
request is translated to a chat completion, and the answer back. A field that neither can express is refused by name
(`unsupported_parameter`)."""
_PASSED_ON = "A provider that has the operation gets the client's bytes, and its answer comes back as it came."
_WHOLE = "There are no streams: `stream` is refused, and so is `prompt_config`, since managed prompts do not apply."
_CHUNKS = """\
With `stream`, `data: <chat.completion.chunk>` events and `data: [DONE]` at the end. The last chunk before it has an
empty `delta`, a `finish_reason` and `usage`. Lines that begin with `:` keep the connection. A stream that breaks after
output gets one `data: {"error": …}` event, then `[DONE]`."""
_TEXT_EVENTS = """\
With `stream`, `data: <text_completion>` events and `data: [DONE]` at the end. A stream that breaks after output gets
one `data: {"error": …}` event, then `[DONE]`."""
_RESPONSE_EVENTS = """\
With `stream`, the vendor's events, each with its `type` and a `sequence_number`; the last is `response.completed`,
`response.incomplete` or `response.failed`."""
_MESSAGE_EVENTS = """\
With `stream`, the vendor's events, from `message_start` to `message_stop`. A stream that breaks after output ends with
the event `error`."""
_MODEL_IN_PATH = """\
The model stands in the address, slashes included. Versions `v1alpha`, `v1beta1` and `v1` mean the same, and so does
`publishers/google/` before `models`; `models/` may be missing before a name with a slash. The key goes into
`x-goog-api-key` or `Authorization`; `key` in the address is refused, since addresses end up in logs."""
_CONTENT_EVENTS = """\
With `alt=sse`, `data:` events of the form of a whole answer, each with its new parts; else one JSON array of them. A
stream that breaks after output ends with `{"error": …}`."""


@dataclass(frozen=True)
class Protocol:
    """POST of one client protocol.

    `vendor` is the page of the vendor's own API. `body` is the schema of requests, `answers` those of whole answers by
    media type, `event` that of each event of a stream, and `error` that of errors. `prompts` tells whether managed
    prompts apply. `variant` is a further path of the operation.
    """

    operation: Operation
    id: str
    summary: str
    description: str
    vendor: str
    body: dict[str, Any]
    answers: dict[str, dict[str, Any]]
    event: dict[str, Any] | None = None
    error: Any = ErrorBody
    prompts: bool = False
    headers: dict[str, str] = field(default_factory=dict)
    body_type: str = JSON

    variant: str = ""

    @property
    def path(self) -> str:
        return self.variant or operation_names(self.operation).route


_ANTHROPICS_HEADERS = {
    "anthropic-version": "Passed on to providers of the Messages API.",
    "anthropic-beta": "Passed on to providers of the Messages API.",
}
_TRANSCRIPTION_FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "file": {"type": "string", "format": "binary", "description": "The recording."},
        "model": {"type": "string", "minLength": 1},
        "prompt": {"type": "string", "description": "Guardrails read it."},
        "response_format": {"type": "string", "enum": list(TRANSCRIPT_TYPES), "default": "json"},
        "user": {"type": "string"},
    },
    "required": ["file", "model"],
}

PROTOCOLS = (
    Protocol(
        operation=Operation.CHAT,
        id="createChatCompletion",
        summary="Create a chat completion",
        description=f"OpenAI's dialect. Unknown fields go to providers of the same dialect as they are.\n\n{_CHUNKS}",
        vendor=f"{_OPENAI}/chat/create",
        body=reference(ChatCompletionRequest),
        answers={JSON: reference(ChatCompletion)},
        event=reference(ChatCompletionChunk),
        prompts=True,
    ),
    Protocol(
        operation=Operation.RESPONSES,
        id="createResponse",
        summary="Create a response of OpenAI's Responses API",
        description=f"{_TRANSLATED}\n\n{_RESPONSE_EVENTS}",
        vendor=f"{_OPENAI}/responses/create",
        body=reference(ResponseRequest),
        answers={JSON: reference(ResponseObject)},
        event=reference(ResponseEvent),
        prompts=True,
    ),
    Protocol(
        operation=Operation.MESSAGES,
        id="createMessage",
        summary="Create a message of Anthropic's Messages API",
        description=f"{_TRANSLATED}\n\n{_MESSAGE_EVENTS}",
        vendor=f"{_ANTHROPIC}/messages",
        body=reference(MessageRequest),
        answers={JSON: reference(MessageObject)},
        event=reference(MessageEvent),
        error=MessagesErrorBody,
        prompts=True,
        headers=_ANTHROPICS_HEADERS,
    ),
    Protocol(
        operation=Operation.COUNT_TOKENS,
        id="countMessageTokens",
        summary="Count the tokens of a message",
        description="Providers that count get the client's bytes; for all others it is an estimate, as `x-svc-warning`"
        " says. A count costs nothing.",
        vendor=f"{_ANTHROPIC}/messages-count-tokens",
        body=reference(TokenCountRequest),
        answers={JSON: reference(TokenCount)},
        error=MessagesErrorBody,
        prompts=True,
        headers=_ANTHROPICS_HEADERS,
    ),
    Protocol(
        operation=Operation.GENERATE_CONTENT,
        id="generateContent",
        summary="Generate content as Google's Gemini API does",
        description=f"{_TRANSLATED} {_MODEL_IN_PATH}",
        vendor=f"{_GOOGLE}/generate-content",
        body=reference(ContentRequest),
        answers={JSON: reference(ContentAnswer)},
        error=GoogleErrorBody,
        prompts=True,
    ),
    Protocol(
        operation=Operation.GENERATE_CONTENT,
        id="streamGenerateContent",
        summary="Stream content as Google's Gemini API does",
        description=f"{_TRANSLATED} {_MODEL_IN_PATH}\n\n{_CONTENT_EVENTS}",
        vendor=f"{_GOOGLE}/generate-content",
        body=reference(ContentRequest),
        answers={JSON: {"type": "array", "items": reference(ContentAnswer)}},
        event=reference(ContentAnswer),
        error=GoogleErrorBody,
        prompts=True,
        variant="/api/gateway/v1beta/models/{model}:streamGenerateContent",
    ),
    Protocol(
        operation=Operation.COUNT_CONTENT_TOKENS,
        id="countContentTokens",
        summary="Count tokens as Google's Gemini API does",
        description="Providers that count get the client's bytes; for all others it is an estimate, as `x-svc-warning`"
        f" says. A count costs nothing. {_MODEL_IN_PATH}",
        vendor=f"{_GOOGLE}/tokens",
        body=reference(ContentCountRequest),
        answers={JSON: reference(ContentCount)},
        error=GoogleErrorBody,
        prompts=True,
    ),
    Protocol(
        operation=Operation.EMBEDDINGS,
        id="embedContent",
        summary="Embed a text as Google's Gemini API does",
        description=f"Of any provider that has embeddings. {_MODEL_IN_PATH}",
        vendor=f"{_GOOGLE}/embeddings",
        body=reference(EmbedRequest),
        answers={JSON: reference(ContentEmbedding)},
        error=GoogleErrorBody,
        variant="/api/gateway/v1beta/models/{model}:embedContent",
    ),
    Protocol(
        operation=Operation.EMBEDDINGS,
        id="batchEmbedContents",
        summary="Embed texts as Google's Gemini API does",
        description=f"Of any provider that has embeddings. {_MODEL_IN_PATH}",
        vendor=f"{_GOOGLE}/embeddings",
        body=reference(BatchEmbedRequest),
        answers={JSON: reference(ContentEmbeddings)},
        error=GoogleErrorBody,
        variant="/api/gateway/v1beta/models/{model}:batchEmbedContents",
    ),
    Protocol(
        operation=Operation.COMPLETIONS,
        id="createCompletion",
        summary="Create a completion of a text",
        description="OpenAI's older API. A provider that completes texts gets the client's bytes; with all others the"
        f" prompt becomes the message of a chat completion.\n\n{_TEXT_EVENTS}",
        vendor=f"{_OPENAI}/completions/create",
        body=reference(TextCompletionRequest),
        answers={JSON: reference(TextCompletion)},
        event=reference(TextCompletion),
        prompts=True,
    ),
    Protocol(
        operation=Operation.EMBEDDINGS,
        id="createEmbeddings",
        summary="Create embeddings",
        description="In OpenAI's form, of any provider that has them. Another model never answers: `models` is refused"
        f" (`unsupported_parameter`). {_WHOLE}",
        vendor=f"{_OPENAI}/embeddings/create",
        body=reference(EmbeddingRequest),
        answers={JSON: reference(Embeddings)},
    ),
    Protocol(
        operation=Operation.RERANK,
        id="createRanking",
        summary="Rank documents by relevance",
        description=f"In Cohere's form. {_PASSED_ON} {_WHOLE}",
        vendor="https://docs.cohere.com/reference/rerank",
        body=reference(RerankRequest),
        answers={JSON: reference(Ranking)},
    ),
    Protocol(
        operation=Operation.MODERATIONS,
        id="createModeration",
        summary="Judge whether texts are harmful",
        description=f"{_PASSED_ON} {_WHOLE}",
        vendor=f"{_OPENAI}/moderations/create",
        body=reference(ModerationRequest),
        answers={JSON: reference(Moderation)},
    ),
    Protocol(
        operation=Operation.IMAGES,
        id="createImage",
        summary="Create images",
        description=f"{_PASSED_ON} {_WHOLE}",
        vendor=f"{_OPENAI}/images/create",
        body=reference(ImageRequest),
        answers={JSON: reference(Images)},
    ),
    Protocol(
        operation=Operation.SPEECH,
        id="createSpeech",
        summary="Speak a text",
        description=f"{_PASSED_ON} {_WHOLE}",
        vendor=f"{_OPENAI}/audio/createSpeech",
        body=reference(SpeechRequest),
        answers={name.decode(): {"type": "string", "contentMediaType": name.decode()} for name in MEDIA_TYPES.values()},
    ),
    Protocol(
        operation=Operation.TRANSCRIPTIONS,
        id="createTranscription",
        summary="Transcribe a recording",
        description=f"{_PASSED_ON} The gateway's own fields are refused in a form (`unsupported_parameter`), and so is"
        " `stream`.",
        vendor=f"{_OPENAI}/audio/createTranscription",
        body=_TRANSCRIPTION_FORM,
        answers={JSON: reference(Transcription), _TEXT: {"type": "string"}},
        body_type=_FORM,
    ),
)
# The numbers of items that lists in bodies have at least and at most, by the component and its field.
BOUNDS = (
    ("ChatCompletionRequest", "messages", 1, MAX_MESSAGES),
    ("TextCompletionRequest", "prompt", 1, MAX_PROMPTS),
    ("EmbeddingRequest", "input", 1, MAX_INPUTS),
    ("RerankRequest", "documents", 1, MAX_DOCUMENTS),
)


def _in_path(path: str) -> list[dict[str, Any]]:
    if "{model}" not in path:
        return []
    named: dict[str, Any] = {"name": "model", "in": "path", "required": True, "schema": {"type": "string"}}
    found = [{**named, "description": "Its id, slashes included."}]
    if path.endswith(":streamGenerateContent"):
        form = {"type": "string", "enum": ["sse", "json"]}
        found.append({"name": "alt", "in": "query", "required": False, "schema": form, "description": "Its form."})
    return found


def described(protocol: Protocol) -> dict[str, Any]:
    content = {media_type: {"schema": schema} for media_type, schema in protocol.answers.items()}
    if protocol.event is not None:
        content[STREAM] = {"schema": {"type": "string"}, "x-event-schema": protocol.event}
    own_headers = [optional_parameter(name, text) for name, text in protocol.headers.items()]
    return {
        "operationId": protocol.id,
        "summary": protocol.summary,
        "description": f"{protocol.description}{_VARIABLES if protocol.prompts else ''}",
        "externalDocs": {"description": "All fields, in the vendor's own words.", "url": protocol.vendor},
        "tags": ["gateway"],
        "security": SECURITY,
        "parameters": [*_in_path(protocol.path), *request_headers(prompts=protocol.prompts), *own_headers],
        "requestBody": {"required": True, "content": {protocol.body_type: {"schema": protocol.body}}},
        "responses": {
            "200": {
                "description": "The answer, whole or streamed." if protocol.event else "The answer.",
                "headers": response_headers(prompts=protocol.prompts),
                "content": content,
            },
            **failures(FAILURES, FAILURES, (protocol.error,)),
        },
    }
