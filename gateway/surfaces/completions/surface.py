from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from core.errors import ApplicationError, ValidationError
from gateway.protocol import sse
from gateway.protocol.wire import Name
from gateway.surfaces import shapes
from gateway.surfaces.base import StreamEncoder, SurfaceRequest
from gateway.surfaces.chat.surface import ChatSurface
from gateway.surfaces.native_only import Token, decoded
from gateway.surfaces.prompt import text_of
from prompts.content.messages import PromptMessage

MAX_PROMPTS = 1000

# These fields of a request have no meaning in a chat completion, or another one.
_NOT_COPIED = frozenset(
    {"prompt", "suffix", "echo", "logprobs", "best_of", "messages", "tools", "tool_choice", "functions"}
)
_ONLY_NATIVE = "is known to providers that complete texts, and to no chat model"


class _Request(msgspec.Struct):
    model: Name
    prompt: str | list[str | Token | list[Token]]
    suffix: str | None = None
    echo: bool | None = None
    logprobs: int | None = None
    best_of: int | None = None
    n: int | None = None


_decoder = msgspec.json.Decoder(_Request)
_decode_raw = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode


class CompletionStream:
    """The chunks of one completion. Those that hold no text, no end and no usage are left out."""

    __slots__ = ("_request_id",)

    def __init__(self, request_id: str) -> None:
        self._request_id = request_id

    def feed(self, chunks: Sequence[bytes]) -> bytes:
        return b"".join(map(self._frame, chunks))

    def close(self, chunks: Sequence[bytes]) -> bytes:
        return self.feed(chunks) + sse.DONE

    def fail(self, error: ApplicationError, relayed: bytes = b"") -> bytes:
        return sse.frame(_encode(error.envelope())) + sse.DONE

    def _frame(self, chunk: bytes) -> bytes:
        made = _completion_of(chunk, self._request_id)
        says = any(choice["text"] or choice["finish_reason"] for choice in made["choices"])
        return sse.frame(_encode(made)) if says or "usage" in made else b""


class CompletionsSurface(ChatSurface):
    name = "completions"
    operation = "completions"

    def read(self, body: bytes) -> SurfaceRequest:
        """Returns the request with a message for each prompt. Raises ValidationError, which names the field."""
        fields = decoded(_decoder, body)
        prompts = _prompts(fields.prompt)
        has_tokens = not isinstance(prompts[0], str)
        texts = [one if isinstance(one, str) else _encode(one).decode() for one in prompts]
        copied: dict[str, Any] = {name: raw for name, raw in _decode_raw(body).items() if name not in _NOT_COPIED}
        copied["messages"] = [{"role": "user", "content": text} for text in texts]
        opaque = "prompt: tokens cannot be read by this project's guardrails; send a text" if has_tokens else ""
        return SurfaceRequest(_encode(copied), tuple(_untranslatable(fields, prompts)), opaque=opaque)

    def answer(self, request: SurfaceRequest, completion: bytes, request_id: str) -> bytes:
        return _encode(_completion_of(completion, request_id))

    def stream(self, request: SurfaceRequest, request_id: str) -> StreamEncoder:
        return CompletionStream(request_id)

    def with_prompt(self, body: bytes, messages: Sequence[PromptMessage]) -> bytes:
        """Returns the client's body with the texts of the messages before each prompt. Raises ValidationError for
        prompts of tokens."""
        prompts = _prompts(decoded(_decoder, body).prompt)
        if not isinstance(prompts[0], str):
            raise ValidationError("prompt: a managed prompt cannot be put before tokens", code="unsupported_parameter")
        text = text_of(messages)
        changed = [f"{text}\n\n{prompt}" for prompt in prompts]
        fields: dict[str, Any] = dict(_decode_raw(body))
        return _encode({**fields, "prompt": changed[0] if len(changed) == 1 else changed})


def _prompts(given: str | list[Any]) -> list[Any]:
    if isinstance(given, str):
        return [given]
    kinds = {type(one) for one in given}
    if len(kinds) != 1:
        raise ValidationError("prompt: expected a text, texts, tokens, or arrays of tokens")
    prompts = [given] if kinds == {int} else given
    if len(prompts) > MAX_PROMPTS:
        raise ValidationError(f"prompt: {len(prompts)} prompts, at most {MAX_PROMPTS} are allowed")
    return prompts


def _untranslatable(fields: _Request, prompts: list[Any]) -> list[str]:
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


def _completion_of(chat: bytes, request_id: str) -> dict[str, Any]:
    """Returns the completion, or the chunk of one, of a chat completion. Calls of tools and reasoning have no place in
    it."""
    completion = shapes.decode(chat)
    fields: dict[str, Any] = {
        "id": f"cmpl-{request_id}",
        "object": "text_completion",
        "created": completion.created,
        "model": completion.model or "",
        "choices": [_choice(choice) for choice in completion.choices],
    }
    return fields if completion.usage is None else {**fields, "usage": completion.usage}


def _choice(choice: shapes.Choice) -> dict[str, Any]:
    text = choice.message or choice.delta
    written = (text.content or text.refusal or "") if text is not None else ""
    return {"text": written, "index": choice.index, "logprobs": None, "finish_reason": choice.finish_reason}


SURFACE = CompletionsSurface()
