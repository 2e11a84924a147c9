"""A streamed answer that arrives as the input of a tool (see `answer_tool.py`): the input streams as the answer's text.
The model's other text is held until the end, and sent only if the tool was not called (a refusal, an answer cut off).
"""

from __future__ import annotations

from collections.abc import Callable

from integrations.providers.anthropic.answer_tool import is_answer
from integrations.providers.anthropic.blocks import OpenBlock
from integrations.providers.anthropic.response import arguments_of
from integrations.providers.anthropic.shapes import Block, Event
from integrations.providers.anthropic.stream import AnthropicStream
from integrations.providers.base import StreamEvent
from integrations.providers.errors import ProviderError


class AnswerToolStream(AnthropicStream):
    def __init__(self, *, model: str, provider: str, redact: Callable[[ProviderError], None]) -> None:
        super().__init__(model=model, provider=provider, redact=redact)
        self._answer: int | None = None  # `_answer` is the index of the block with the answer.
        self._begun = ""  # `_begun` is the input with which the answer's block began.
        self._waiting: list[str] = []

    def _block_start(self, index: int, block: Block, data: bytes, out: list[StreamEvent]) -> None:
        if is_answer(block) and self._answer is None:
            self._answer, self._begun = index, arguments_of(block)
            block = Block("text")
        super()._block_start(index, block, data, out)

    def _text(self, text: str, block: OpenBlock | None, out: list[StreamEvent]) -> None:
        self._waiting.append(text)

    def _arguments(self, index: int, block: OpenBlock | None, fragment: str | None, out: list[StreamEvent]) -> None:
        if index == self._answer and fragment:
            super()._text(fragment, block, out)
        else:
            super()._arguments(index, block, fragment, out)

    def _block_stop(self, index: int, out: list[StreamEvent]) -> None:
        opened = self._open.get(index)
        if index == self._answer and opened is not None and not opened.texts:
            super()._text(self._begun, opened, out)
        super()._block_stop(index, out)

    def _message_event(self, event: Event, name: str, out: list[StreamEvent]) -> None:
        if event.type == "message_stop" and self._answer is None and self._waiting:
            super()._text("".join(self._waiting), None, out)
        super()._message_event(event, name, out)
