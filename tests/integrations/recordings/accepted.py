"""Whether the vendors' official SDKs have types for a body."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from anthropic.types.beta import BetaContentBlockParam, BetaMessageParam, BetaTextBlockParam, BetaToolUnionParam
from anthropic.types.beta.message_create_params import MessageCreateParamsNonStreaming, MessageCreateParamsStreaming
from openai.types.chat.completion_create_params import (
    CompletionCreateParamsNonStreaming,
    CompletionCreateParamsStreaming,
)
from pydantic import TypeAdapter, ValidationError

from tests.integrations.recordings.requests import anthropic_blocks
from tests.integrations.translations.accepted import ACCEPTED as CHECKS

Json = Mapping[str, Any]

# The types of Anthropic's beta API include all fields of its other types.
_TOOL: TypeAdapter[Any] = TypeAdapter(BetaToolUnionParam)
_MESSAGE: TypeAdapter[Any] = TypeAdapter(BetaMessageParam)
_BLOCK: TypeAdapter[Any] = TypeAdapter(BetaContentBlockParam)
_TEXT: TypeAdapter[Any] = TypeAdapter(BetaTextBlockParam)
_MESSAGES: Mapping[bool, TypeAdapter[Any]] = {
    False: TypeAdapter(MessageCreateParamsNonStreaming),
    True: TypeAdapter(MessageCreateParamsStreaming),
}
_COMPLETIONS: Mapping[bool, TypeAdapter[Any]] = {
    False: TypeAdapter(CompletionCreateParamsNonStreaming),
    True: TypeAdapter(CompletionCreateParamsStreaming),
}


def assert_accepted_by_anthropic(body: Json) -> None:
    """Validates level by level, since the SDK's types declare lists as iterables, which are not validated inside."""
    _MESSAGES[bool(body.get("stream"))].validate_python(body)
    for tool in body.get("tools", ()):
        _TOOL.validate_python(tool)
    for block in anthropic_blocks(body.get("system", "")):
        _TEXT.validate_python(block)
    for message in body["messages"]:
        _MESSAGE.validate_python(message)
        for block in anthropic_blocks(message["content"]):
            _BLOCK.validate_python(block)
            for inner in block.get("content", ()) if block["type"] == "tool_result" else ():
                _BLOCK.validate_python(inner)


def assert_accepted_by_openai(body: Json) -> None:
    _all_of(_COMPLETIONS[bool(body.get("stream"))].validate_python(dict(body)))


def _all_of(validated: Any) -> Any:
    """Returns the value with all iterables read, since they are validated only while they are read."""
    if isinstance(validated, Mapping):
        return {name: _all_of(value) for name, value in validated.items()}
    if isinstance(validated, str | bytes) or not isinstance(validated, Iterable):
        return validated
    return [_all_of(item) for item in validated]


def _accepts(check: Callable[[Json], None]) -> Callable[[Json], bool]:
    def accepts(body: Json) -> bool:
        try:
            check(body)
        except (AssertionError, ValidationError):
            return False
        return True

    return accepts


ACCEPTED: Mapping[str, Callable[[Json], bool]] = {
    "anthropic": _accepts(assert_accepted_by_anthropic),
    "google_vertex": _accepts(CHECKS["google"]),
    "openai.chat_completions": _accepts(assert_accepted_by_openai),
    **{provider: _accepts(check) for provider, check in CHECKS.items()},
}
"""Whether the SDK of a provider, or of an API, accepts a body."""
