"""The model behind every fake vendor: it reads the file, edits it and says so, by the tools that the program offers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from integrations.providers.usage import Usage
from tests.fakes.dialects.story import Call, ReadRequest, Story

FILE = "greeting.txt"
BEFORE = "Hello, world"
AFTER = "Goodbye, world"
TASK = f"Read {FILE} and replace the word Hello in it by Goodbye."
DONE = f"{FILE} says Goodbye now."
# Base64, as Gemini's signatures have to be.
SIGNATURE = "c2lnbmVkIGJ5IHRoZSBmYWtlIHZlbmRvcg=="
USAGE = Usage(prompt_tokens=1200, completion_tokens=40)

# The tool by which a model finds tools that a program does not offer at once. A call of it is no turn of its own.
SEARCH = "tool_search"

# The words of a compaction's request, and of the summary that this model writes.
_ASKS_FOR_SUMMARY = "write a summary that will replace this conversation"
_MADE = re.compile(r"Turns made: (\d+)\.")

# A turn of the model: the arguments of each tool that it would call, by the tool's name. The first that is offered is
# called.
Turn = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Brain:
    """A model that knows a program. It makes the first call of `turns` that the program offers; after all of them it
    answers `text`.

    A request without these tools is a program's side question, such as one for a title.
    """

    turns: tuple[Turn, ...]
    folder: str
    text: str = DONE

    def think(self, request: ReadRequest) -> Story:
        answer = Story(usage=USAGE, model=request.model, id=uuid4().hex)
        said = "\n".join(text for _, text in request.turns)
        turns = [_filled(turn, self.folder) for turn in self.turns]
        # What a summary says is done stands for the calls that it replaced.
        turns = turns[max((int(number) for number in _MADE.findall(said)), default=0) :]
        waiting = [turn for turn in turns if not any(_is_of(call, turn) for call in request.calls)]
        if request.turns and _ASKS_FOR_SUMMARY in request.turns[-1][1]:
            return replace(answer, text=f"The task: {TASK} Turns made: {len(self.turns) - len(waiting)}.")
        if not waiting:
            return replace(answer, text=self.text)
        possible = [(name, turn[name]) for turn in waiting for name in turn if name in request.tools]
        if not possible:
            return replace(answer, text="A greeting")
        name, arguments = possible[0]
        thought = replace(answer, reasoning=f"{name} comes next.", signature=SIGNATURE)
        call = Call(f"call_{len(request.calls)}", name, arguments)
        return replace(thought, calls=(call,), finish="tool_calls")


def _is_of(call: Call, turn: Turn) -> bool:
    """A program may have added arguments of its own."""
    return call.name != SEARCH and turn.get(call.name, {"": ""}).items() <= call.arguments.items()


def _filled(value: Any, folder: str) -> Any:
    if isinstance(value, str):
        return value.replace("{folder}", folder)
    if isinstance(value, Mapping):
        return {name: _filled(held, folder) for name, held in value.items()}
    return [_filled(held, folder) for held in value] if isinstance(value, list) else value
