from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

_NAME = re.compile(r"gemini-(\d+)(?:\.(\d+))?")

Level = Literal["MINIMAL", "LOW", "MEDIUM", "HIGH", "XHIGH"]


@dataclass(frozen=True, slots=True)
class Thinking:
    """The settings of thinking that a model takes: https://ai.google.dev/gemini-api/docs/thinking lists the ranges and
    levels.

    `by` is the form of the effort. Budgets are in tokens; `can_stop`: thinking can be switched off.
    """

    by: Literal["nothing", "budget", "level"]
    can_stop: bool = True
    budgets: tuple[int, int] = (1, 24576)
    levels: tuple[Level, ...] = ("MINIMAL", "LOW", "MEDIUM", "HIGH")


@dataclass(frozen=True, slots=True)
class Model:
    """The abilities of a model.

    `signed_calls`: the first function call of a step must carry a thought signature
    (https://ai.google.dev/gemini-api/docs/thought-signatures). `media_results`: functions may return files
    (https://ai.google.dev/gemini-api/docs/function-calling#multimodal). `instructions`: the model takes a system
    instruction (https://ai.google.dev/gemma/docs/core/prompt-structure#system-instructions). `resolutions`: each image
    may have its own resolution (https://ai.google.dev/gemini-api/docs/media-resolution). `charges_by_query`: a search
    is charged per query, at other models per answer (https://ai.google.dev/gemini-api/docs/google-search#pricing).
    """

    thinking: Thinking
    signed_calls: bool = False
    media_results: bool = False
    resolutions: bool = False
    instructions: bool = True
    charges_by_query: bool = False


@lru_cache(maxsize=1024)
def model_named(name: str) -> Model:
    """A name without a generation (a tuned model) counts as 2.5, a `…-latest` alias as the newest generation."""
    generation = _generation(name)
    is_pro = "-pro" in name
    if generation >= (3, 0):
        return Model(
            _by_level(generation, is_pro),
            signed_calls=True,
            media_results=True,
            resolutions=True,
            charges_by_query=True,
        )
    if generation < (2, 5) or "-image" in name or "-tts" in name:
        return Model(Thinking("nothing"), instructions="gemma-3" not in name)
    if is_pro:
        return Model(Thinking("budget", can_stop=False, budgets=(128, 32768)))
    return Model(Thinking("budget", budgets=(512 if "-lite" in name else 1, 24576)))


def _generation(name: str) -> tuple[int, int]:
    found = _NAME.search(name)
    if found is not None:
        return int(found[1]), int(found[2] or 0)
    if "gemma" in name or "learnlm" in name:
        return 0, 0
    return (3, 0) if name.endswith("-latest") else (2, 5)


def _by_level(generation: tuple[int, int], is_pro: bool) -> Thinking:
    """The levels of a generation (https://ai.google.dev/gemini-api/docs/thinking#thinking-levels).

    Gemini 3 Pro has two levels, 3.1 Pro three; from 3.7 and in the fourth generation `LOW` is the lowest. `XHIGH` is
    documented for no model.
    """
    if generation == (3, 0) and is_pro:
        return Thinking("level", can_stop=False, levels=("LOW", "HIGH"))
    if is_pro or generation >= (3, 7):
        return Thinking("level", can_stop=False, levels=("LOW", "MEDIUM", "HIGH"))
    return Thinking("level", can_stop=False)
