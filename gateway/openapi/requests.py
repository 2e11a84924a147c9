"""Request bodies of protocols whose surfaces decode no type.

They name the gateway's own fields and those that it acts on; the others are the vendor's.
"""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from msgspec import Meta
from typing_extensions import TypedDict

from gateway.protocol.wire import Name, ProviderPreferences
from gateway.surfaces.native_only import Token


class RoutingFields(TypedDict):
    models: NotRequired[Annotated[list[Name] | None, Meta(description="Further models to try, in order.")]]
    provider: NotRequired[ProviderPreferences | None]
    prompt_config: NotRequired[Annotated[str | None, Meta(description="The managed prompt; empty for none.")]]
    prompt_variables: NotRequired[dict[str, Any] | None]


class ResponseRequest(RoutingFields):
    model: Name
    input: NotRequired[Annotated[str | list[dict[str, Any]] | None, Meta(description="A text, or items.")]]
    instructions: NotRequired[str | None]
    max_output_tokens: NotRequired[int | None]
    tools: NotRequired[list[dict[str, Any]] | None]
    user: NotRequired[str | None]
    stream: NotRequired[bool | None]


class TokenCountRequest(RoutingFields):
    model: Name
    messages: list[dict[str, Any]]
    system: NotRequired[Annotated[str | list[dict[str, Any]] | None, Meta(description="A text, or blocks of text.")]]
    tools: NotRequired[list[dict[str, Any]] | None]


class MessageRequest(TokenCountRequest):
    max_tokens: Annotated[int, Meta(ge=0, le=1_000_000)]
    metadata: NotRequired[Annotated[dict[str, Any] | None, Meta(description="`user_id` is the end user.")]]
    stream: NotRequired[bool | None]


class ContentRequest(RoutingFields):
    contents: list[dict[str, Any]]
    systemInstruction: NotRequired[dict[str, Any] | None]
    tools: NotRequired[list[dict[str, Any]] | None]
    generationConfig: NotRequired[dict[str, Any] | None]


class ContentCountRequest(RoutingFields):
    contents: NotRequired[list[dict[str, Any]] | None]
    generateContentRequest: NotRequired[
        Annotated[dict[str, Any] | None, Meta(description="A whole request, in place of `contents`.")]
    ]


class EmbedRequest(RoutingFields):
    content: dict[str, Any]
    taskType: NotRequired[str | None]
    outputDimensionality: NotRequired[int | None]


class BatchEmbedRequest(RoutingFields):
    requests: list[dict[str, Any]]


class TextCompletionRequest(RoutingFields):
    model: Name
    prompt: Annotated[str | list[str | Token | list[Token]], Meta(description="Of texts, or of tokens.")]
    max_tokens: NotRequired[int | None]
    suffix: NotRequired[str | None]
    echo: NotRequired[bool | None]
    logprobs: NotRequired[int | None]
    best_of: NotRequired[int | None]
    n: NotRequired[int | None]
    user: NotRequired[str | None]
    stream: NotRequired[bool | None]
