"""Thinking in Mistral's answers: content parts of type `thinking` (https://docs.mistral.ai/capabilities/reasoning).

Their text becomes `reasoning_content` (the shared code of the dialect does that), and they leave as
`reasoning_details` too, so that a client can send them back whole, signature included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from typing_extensions import override

from integrations.providers.base import StreamEvent
from integrations.providers.completion import reasoning_text
from integrations.providers.errors import ProviderError
from integrations.providers.openai_stream import OpenAIStream
from integrations.providers.surrogates import lenient

FORMAT = "mistral-thinking-v1"
_decode = lenient(msgspec.json.Decoder(dict[str, Any]).decode)


class MistralStream(OpenAIStream):
    """Thoughts stream as text; the entry to send back comes once, when the thought is complete."""

    __slots__ = ("_thoughts", "_told")

    def __init__(
        self, *, model: str, provider: str, redact: Callable[[ProviderError], None], seed: bytes = b""
    ) -> None:
        super().__init__(model=model, provider=provider, redact=redact, seed=seed)
        self._thoughts: dict[int, list[str]] = {}  # choice → the pieces of its unfinished thought
        self._told: dict[int, int] = {}  # choice → how many entries it has

    @override
    def _chunk(self, data: bytes, name: str) -> StreamEvent | None:
        if self._thoughts and name != "error":
            return self._rework(data)  # where thinking ends, the entry is added
        return super()._chunk(data, name)

    @override
    def _keep_choice(self, choice: dict[str, Any], position: int) -> bool:
        entry = self._complete_thought(choice, position)
        kept = super()._keep_choice(choice, position)
        if entry is None:
            return kept
        choice["delta"]["reasoning_details"] = [entry]
        return True

    def _complete_thought(self, choice: Mapping[str, Any], position: int) -> dict[str, Any] | None:
        """The entry of a thought that this choice ends: by its signature, by what follows it, or with the answer."""
        index, delta = choice.get("index"), choice.get("delta")
        index = index if isinstance(index, int) else position
        delta = delta if isinstance(delta, Mapping) else {}
        signature = ""
        thinking = list(_thinking_parts(delta))
        for part in thinking:
            text, signature = _read(part)
            self._thoughts.setdefault(index, []).append(text)
        followed = bool(delta.get("content") or delta.get("tool_calls")) and not thinking
        if index not in self._thoughts or not (signature or followed or choice.get("finish_reason")):
            return None
        number = self._told.get(index, 0)
        self._told[index] = number + 1
        return reasoning_text("".join(self._thoughts.pop(index)), format=FORMAT, signature=signature, index=number)


def with_details(body: bytes) -> bytes:
    """The answer with `reasoning_details` beside its thinking parts; the same bytes when it has none."""
    if b'"thinking"' not in body:
        return body
    try:
        answer = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return body  # not an answer: whoever parses it says so
    changed = False
    choices = answer.get("choices")
    for choice in choices if isinstance(choices, list) else []:
        message = choice.get("message") if isinstance(choice, Mapping) else None
        if isinstance(message, dict) and (details := list(_details(message))):
            message["reasoning_details"] = details
            changed = True
    return msgspec.json.encode(answer) if changed else body


def _details(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for index, part in enumerate(_thinking_parts(message)):
        text, signature = _read(part)
        yield reasoning_text(text, format=FORMAT, signature=signature, index=index)


def _thinking_parts(message: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    content = message.get("content")
    for part in content if isinstance(content, list) else []:
        if isinstance(part, Mapping) and part.get("type") == "thinking":
            yield part


def _read(part: Mapping[str, Any]) -> tuple[str, str]:
    """Text and signature. References to tool results and documents have no text."""
    thinking, signature = part.get("thinking"), part.get("signature")
    pieces = thinking if isinstance(thinking, list) else [{"text": thinking}]
    texts = [piece.get("text") for piece in pieces if isinstance(piece, Mapping)]
    text = "".join(text for text in texts if isinstance(text, str))
    return text, signature if isinstance(signature, str) else ""
