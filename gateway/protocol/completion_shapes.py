"""The shapes of chat completions and of the list of models in the OpenAPI document; providers may add fields."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict


class CompletionUsage(TypedDict):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    estimated: NotRequired[Literal[True]]


class CompletionMessage(TypedDict):
    role: str
    content: NotRequired[str | None]
    tool_calls: NotRequired[list[dict[str, Any]] | None]


class CompletionChoice(TypedDict):
    index: int
    message: CompletionMessage
    finish_reason: str | None


class ChatCompletion(TypedDict):
    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[CompletionChoice]
    usage: CompletionUsage


class CompletionDelta(TypedDict):
    role: NotRequired[str | None]
    content: NotRequired[str | None]
    tool_calls: NotRequired[list[dict[str, Any]] | None]


class ChunkChoice(TypedDict):
    index: int
    delta: CompletionDelta
    finish_reason: str | None


class ChatCompletionChunk(TypedDict):
    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    choices: list[ChunkChoice]
    usage: NotRequired[CompletionUsage | None]


class ModelPrefix(TypedDict):
    id: str
    object: Literal["model.prefix"]
    owned_by: str
    providers: list[str]
    enabled: bool


class ModelPrices(TypedDict):
    input_cost_per_1m: str
    output_cost_per_1m: str
    cache_read_cost_per_1m: str | None
    cache_write_cost_per_1m: str | None


class Model(TypedDict):
    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    provider: str
    prefix: str
    operations: list[str]
    context_window: int | None
    max_output_tokens: int | None
    abilities: dict[str, bool]
    prices: ModelPrices | None


class ModelList(TypedDict):
    object: Literal["list"]
    data: list[Model]
    prefixes: list[ModelPrefix]
