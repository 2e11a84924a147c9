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
from integrations.providers.common.completion import reasoning_text
from integrations.providers.common.surrogates import lenient
from integrations.providers.errors import ProviderError
from integrations.providers.mistral.references import MARK, Parts, parts_of
from integrations.providers.openai.stream import OpenAIStream

FORMAT = "mistral-thinking-v1"
_decode = lenient(msgspec.json.Decoder(dict[str, Any]).decode)


class MistralStream(OpenAIStream):
    """Thoughts stream as text; the entry to send back comes once, when the thought is complete. So do the parts of an
    answer with references, when it is complete."""

    __slots__ = ("_parts", "_reworked", "_thoughts", "_told")

    def __init__(
        self, *, model: str, provider: str, redact: Callable[[ProviderError], None], seed: bytes = b""
    ) -> None:
        super().__init__(model=model, provider=provider, redact=redact, seed=seed)
        self._thoughts: dict[int, list[str]] = {}  # choice → the pieces of its unfinished thought
        self._told: dict[int, int] = {}  # choice → how many entries it has
        self._parts = Parts()  # of choice 0
        self._reworked = False

    @override
    def _chunk(self, data: bytes, name: str) -> StreamEvent | None:
        if self._thoughts and name != "error":
            return self._rework(data)  # where thinking ends, the entry is added
        self._reworked = False
        event = super()._chunk(data, name)
        if event is not None and event.text and not self._reworked:
            self._parts.say(event.text)
        return event

    @override
    def _keep_choice(self, choice: dict[str, Any], position: int) -> bool:
        self._reworked = True
        entry = self._complete_thought(choice, position)
        parts = self._complete_parts(choice, position)
        kept = super()._keep_choice(choice, position)
        if entry is not None:
            choice["delta"]["reasoning_details"] = [entry]
        if parts:
            choice["delta"]["provider_specific_fields"] = {"content": parts}
        return kept or entry is not None or bool(parts)

    def _complete_parts(self, choice: Mapping[str, Any], position: int) -> list[dict[str, Any]]:
        """The parts of an answer with references that this choice ends."""
        delta = choice.get("delta")
        if choice.get("index", position) != 0 or not isinstance(delta, Mapping):
            return []
        self._parts.add(delta.get("content"))
        return self._parts.taken() if choice.get("finish_reason") else []

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
    """The answer with `reasoning_details` beside its thinking parts, and the parts themselves where there are
    references among them; the same bytes when it has neither."""
    if b'"thinking"' not in body and MARK not in body:
        return body
    try:
        answer = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return body  # not an answer: whoever parses it says so
    changed = False
    choices = answer.get("choices")
    for choice in choices if isinstance(choices, list) else []:
        message = choice.get("message") if isinstance(choice, Mapping) else None
        if not isinstance(message, dict):
            continue
        if details := list(_details(message)):
            message["reasoning_details"] = details
            changed = True
        if parts := parts_of(message.get("content")):
            message["provider_specific_fields"] = {"content": parts}
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
