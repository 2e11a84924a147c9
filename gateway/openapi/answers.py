"""Answers of client protocols other than chat completions. Providers that speak the protocol may add fields."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from gateway.protocol.completion_shapes import CompletionUsage


class ResponseUsage(TypedDict):
    input_tokens: int
    output_tokens: int
    total_tokens: int


class ResponseObject(TypedDict):
    id: str
    object: Literal["response"]
    created_at: float
    status: str
    model: str
    output: list[dict[str, Any]]
    usage: NotRequired[ResponseUsage | None]


class ResponseEvent(TypedDict):
    type: str
    sequence_number: NotRequired[int]


class MessageUsage(TypedDict):
    input_tokens: int
    output_tokens: int
    estimated: NotRequired[Literal[True]]


class MessageObject(TypedDict):
    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    model: str
    content: list[dict[str, Any]]
    stop_reason: str | None
    stop_sequence: NotRequired[str | None]
    usage: MessageUsage


class MessageEvent(TypedDict):
    type: str


class TokenCount(TypedDict):
    input_tokens: int


class TextChoice(TypedDict):
    index: int
    text: str
    finish_reason: str | None


class TextCompletion(TypedDict):
    """An answer, or one event of a stream."""

    id: str
    object: Literal["text_completion"]
    created: int
    model: str
    choices: list[TextChoice]
    usage: NotRequired[CompletionUsage | None]


class Embedding(TypedDict):
    """A vector: numbers, or with `encoding_format` `base64` their 32-bit floats."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class InputUsage(TypedDict):
    prompt_tokens: int
    total_tokens: int
    estimated: NotRequired[Literal[True]]


class Embeddings(TypedDict):
    object: Literal["list"]
    data: list[Embedding]
    model: str
    usage: NotRequired[InputUsage]


class Rank(TypedDict):
    index: int
    relevance_score: float


class Ranking(TypedDict):
    """The documents, the most relevant first, by their index in the request."""

    results: list[Rank]


class Verdict(TypedDict):
    flagged: bool


class Moderation(TypedDict):
    results: list[Verdict]


class Image(TypedDict):
    url: NotRequired[str | None]
    b64_json: NotRequired[str | None]


class Images(TypedDict):
    data: list[Image]


class Transcription(TypedDict):
    text: str


class AnthropicModel(TypedDict):
    type: Literal["model"]
    id: str
    display_name: str
    created_at: str
    max_input_tokens: int | None
    max_tokens: int | None


class AnthropicModelList(TypedDict):
    data: list[AnthropicModel]
    has_more: Literal[False]
    first_id: str | None
    last_id: str | None


class ContentUsage(TypedDict):
    promptTokenCount: NotRequired[int]
    candidatesTokenCount: NotRequired[int]
    totalTokenCount: NotRequired[int]
    thoughtsTokenCount: NotRequired[int]
    cachedContentTokenCount: NotRequired[int]
    estimated: NotRequired[Literal[True]]


class ContentAnswer(TypedDict):
    """An answer of the Gemini API, or one event of a stream."""

    candidates: NotRequired[list[dict[str, Any]]]
    promptFeedback: NotRequired[dict[str, Any]]
    usageMetadata: NotRequired[ContentUsage]
    modelVersion: NotRequired[str]
    responseId: NotRequired[str]


class ContentCount(TypedDict):
    totalTokens: int


class GoogleModel(TypedDict):
    name: str
    displayName: str
    version: str
    inputTokenLimit: NotRequired[int]
    outputTokenLimit: NotRequired[int]
    supportedGenerationMethods: list[str]
    thinking: NotRequired[bool]


class GoogleModelList(TypedDict):
    models: list[GoogleModel]


class ContentVector(TypedDict):
    values: list[float]


class VectorUsage(TypedDict):
    promptTokenCount: int


class ContentEmbedding(TypedDict):
    embedding: ContentVector
    usageMetadata: NotRequired[VectorUsage]


class ContentEmbeddings(TypedDict):
    embeddings: list[ContentVector]
    usageMetadata: NotRequired[VectorUsage]
