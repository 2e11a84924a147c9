from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from integrations.providers.base import StreamEvent
from integrations.providers.common.completion import reasoning_text
from integrations.providers.errors import ProviderError
from integrations.providers.mistral.response import FORMAT, Parts, read_part, thinking_parts
from integrations.providers.openai.stream import OpenAIStream


class MistralStream(OpenAIStream):
    """Thoughts are streamed as text. The entry that must come back is sent once, when the thought is complete; so are
    the parts of an answer with references."""

    has_plain = False  # The texts are also parts of an answer with references.

    def __init__(
        self, *, model: str, provider: str, redact: Callable[[ProviderError], None], seed: bytes = b""
    ) -> None:
        super().__init__(model=model, provider=provider, redact=redact, seed=seed)
        # `_thoughts` maps a choice to the pieces of its unfinished thought.
        self._thoughts: dict[int, list[str]] = {}
        # `_detail_counts` counts the entries of `reasoning_details` of each choice.
        self._detail_counts: dict[int, int] = {}
        self._parts = Parts()  # `_parts` belongs to choice 0.
        self._reworked = False

    def _chunk(self, data: bytes, name: str) -> StreamEvent | None:
        if self._thoughts and name != "error":
            return self._rework(data)  # The entry of a thought is added to the chunk in which the thought ends.
        self._reworked = False
        event = super()._chunk(data, name)
        if event is not None and event.text and not self._reworked:
            self._parts.add_text(event.text)
        return event

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
        delta = choice.get("delta")
        if choice.get("index", position) != 0 or not isinstance(delta, Mapping):
            return []
        self._parts.add(delta.get("content"))
        return self._parts.taken() if choice.get("finish_reason") else []

    def _complete_thought(self, choice: Mapping[str, Any], position: int) -> dict[str, Any] | None:
        index, delta = choice.get("index"), choice.get("delta")
        index = index if isinstance(index, int) else position
        delta = delta if isinstance(delta, Mapping) else {}
        signature = ""
        thinking = list(thinking_parts(delta))
        for part in thinking:
            text, signature = read_part(part)
            self._thoughts.setdefault(index, []).append(text)
        followed = bool(delta.get("content") or delta.get("tool_calls")) and not thinking
        if index not in self._thoughts or not (signature or followed or choice.get("finish_reason")):
            return None
        number = self._detail_counts.get(index, 0)
        self._detail_counts[index] = number + 1
        return reasoning_text("".join(self._thoughts.pop(index)), format=FORMAT, signature=signature, index=number)
