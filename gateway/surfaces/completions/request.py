"""Translates the request for a completion to a chat completion with one message
(https://platform.openai.com/docs/api-reference/completions/create)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from core.errors import ValidationError
from gateway.protocol.wire import Name
from gateway.surfaces.base import SurfaceRequest
from gateway.surfaces.native_only import Token, decoded
from gateway.surfaces.prompt import text_of
from prompts.content.messages import PromptMessage

MAX_PROMPTS = 1000

# These fields of a request have no meaning in a chat completion, or another one.
_NOT_COPIED = frozenset(
    {"prompt", "suffix", "echo", "logprobs", "best_of", "messages", "tools", "tool_choice", "functions"}
)
_ONLY_NATIVE = "is known to providers that complete texts, and to no chat model"


class CompletionRequest(msgspec.Struct):
    model: Name
    prompt: str | list[str | Token | list[Token]]
    suffix: str | None = None
    echo: bool | None = None
    logprobs: int | None = None
    best_of: int | None = None
    n: int | None = None


_decoder = msgspec.json.Decoder(CompletionRequest)
_decode_raw = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.encode


def read(body: bytes) -> SurfaceRequest:
    """Returns the request with a message for each prompt. Raises ValidationError, which names the field."""
    fields = decoded(_decoder, body)
    prompts = _prompts(fields.prompt)
    has_tokens = not isinstance(prompts[0], str)
    texts = [one if isinstance(one, str) else _encode(one).decode() for one in prompts]
    copied: dict[str, Any] = {name: raw for name, raw in _decode_raw(body).items() if name not in _NOT_COPIED}
    copied["messages"] = [{"role": "user", "content": text} for text in texts]
    opaque = "prompt: tokens cannot be read by this project's guardrails; send a text" if has_tokens else ""
    return SurfaceRequest(_encode(copied), tuple(_untranslatable(fields, prompts)), opaque=opaque)


def with_prompt(body: bytes, messages: Sequence[PromptMessage]) -> bytes:
    """Returns the client's body with the texts of the messages before each prompt. Raises ValidationError for prompts
    of tokens."""
    prompts = _prompts(decoded(_decoder, body).prompt)
    if not isinstance(prompts[0], str):
        raise ValidationError("prompt: a managed prompt cannot be put before tokens", code="unsupported_parameter")
    text = text_of(messages)
    changed = [f"{text}\n\n{prompt}" for prompt in prompts]
    fields: dict[str, Any] = dict(_decode_raw(body))
    return _encode({**fields, "prompt": changed[0] if len(changed) == 1 else changed})


def _prompts(given: str | list[Any]) -> list[Any]:
    """Returns the prompts: texts, or arrays of tokens. Raises ValidationError."""
    if isinstance(given, str):
        return [given]
    kinds = {type(one) for one in given}
    if len(kinds) != 1:
        raise ValidationError("prompt: expected a text, texts, tokens, or arrays of tokens")
    prompts = [given] if kinds == {int} else given
    if len(prompts) > MAX_PROMPTS:
        raise ValidationError(f"prompt: {len(prompts)} prompts, at most {MAX_PROMPTS} are allowed")
    return prompts


def _untranslatable(fields: CompletionRequest, prompts: list[Any]) -> list[str]:
    """Returns the fields without which the answer of a chat model would differ in kind."""
    found = []
    if len(prompts) > 1 or not isinstance(prompts[0], str):
        found.append(
            "prompt: a chat model answers one text; several prompts, and tokens, are for providers of completions"
        )
    if fields.suffix:
        found.append(f"suffix: this field {_ONLY_NATIVE}")
    if fields.echo:
        found.append(f"echo: this field {_ONLY_NATIVE}")
    if fields.logprobs is not None:
        found.append(f"logprobs: their form in completions {_ONLY_NATIVE}")
    if fields.best_of is not None and fields.best_of > (fields.n or 1):
        found.append(f"best_of: this field {_ONLY_NATIVE}")
    return found
