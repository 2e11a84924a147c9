"""The parameters that a generation of Claude accepts, derived from the model's name.

Sources: https://platform.claude.com/docs/en/build-with-claude/thinking, …/effort, …/structured-outputs,
…/mid-conversation-system-messages and the migration guides of the models. A name without a version gets the most
permissive rules, and the vendor decides. Only instructions in mid-conversation are sent in the way that every model
takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

# The models of generation 3.5 have a largest output of 8,192 tokens, which some of the catalogs no longer list.
_MAX_OUTPUT_3_5 = 8192
# The families Fable and Mythos had no version in their first models' names.
_FAMILIES = ("fable", "mythos")

Thinking = Literal["none", "manual", "both", "adaptive"]


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a generation. `max_output`: the largest number of tokens in an answer, None where it is unknown.
    `thinking`: how thinking is requested (a budget, or the model decides); `off`: the `type` that turns it off, empty
    where nothing can; `thinks_by_default`: it is on by default; `hides_thinking`: its text is omitted unless requested.
    `efforts` are the levels of `output_config.effort`; `sampling`: temperature, `top_p` and `top_k` may be set,
    `both_sampling`: temperature together with `top_p`; `forced_tools`: a tool may be forced; `schema`: answers and tool
    arguments can follow a schema; `instructions_in_place`: messages of role `system` may stand among the others.
    `is_known`: the name shows the generation."""

    max_output: int | None
    thinking: Thinking
    off: str = "disabled"
    thinks_by_default: bool = False
    hides_thinking: bool = False
    efforts: tuple[str, ...] = ()
    sampling: bool = True
    both_sampling: bool = True
    forced_tools: bool = True
    schema: bool = True
    instructions_in_place: bool = False
    is_known: bool = True


@lru_cache(maxsize=1024)
def rules_of(model: str, max_output: int | None = None) -> Rules:
    """Returns the rules of the model's generation. `max_output` is the listed limit of its answers, in tokens."""
    family, version = _named(model)
    if version is None:
        efforts = _efforts("opus", (5, 0))
        return Rules(max_output, thinking="both", efforts=efforts, is_known=False)
    adaptive_only = version >= (4, 7)
    return Rules(
        max_output=max_output or (_MAX_OUTPUT_3_5 if version == (3, 5) else None),
        thinking=_thinking(version),
        off=_off(family, version),
        thinks_by_default=version >= (5, 0),
        hides_thinking=adaptive_only,
        efforts=_efforts(family, version),
        sampling=not adaptive_only,
        both_sampling=version < (4, 5) and not (family == "opus" and version == (4, 1)),
        forced_tools=version < (5, 1) or family == "haiku",
        schema=version >= (4, 5) or (family == "opus" and version == (4, 1)),
        instructions_in_place=version >= (4, 8),
    )


@lru_cache(maxsize=1024)
def family_and_version(model: str) -> tuple[str, tuple[int, int]]:
    """Returns family and version as the model's name shows them, empty and (0, 0) where it does not."""
    family, version = _named(model)
    return family, version or (0, 0)


def _named(model: str) -> tuple[str, tuple[int, int] | None]:
    """Returns family and version: of `claude-3-5-sonnet-20241022`, `claude-opus-4-1@20250805`, `claude-sonnet-5`."""
    words = model.lower().rpartition("/")[2].partition("@")[0].replace(".", "-").split("-")
    if "claude" not in words:
        return "", None
    family = next((word for word in words if word in ("opus", "sonnet", "haiku", *_FAMILIES)), "")
    # Numbers of a version have one or two digits; longer ones are dates.
    numbers = [int(word) for word in words if word.isdecimal() and len(word) <= 2]
    if numbers:
        return family, (numbers[0], numbers[1] if len(numbers) > 1 else 0)
    return family, (5, 0) if family in _FAMILIES else None


def _thinking(version: tuple[int, int]) -> Thinking:
    if version < (3, 7):
        return "none"
    if version < (4, 6):
        return "manual"
    return "both" if version == (4, 6) else "adaptive"


def _off(family: str, version: tuple[int, int]) -> str:
    """Returns the `type` that turns thinking off, empty where nothing can:
    https://platform.claude.com/docs/en/models/opus-5-5/whats-new-opus-5-5, …/sonnet-5-5/whats-new-sonnet-5-5"""
    if family in _FAMILIES or (family == "opus" and version >= (5, 5)):
        return ""
    return "between_tools" if family == "sonnet" and version >= (5, 5) else "disabled"


def _efforts(family: str, version: tuple[int, int]) -> tuple[str, ...]:
    """Returns the model's levels of effort: https://platform.claude.com/docs/en/build-with-claude/effort"""
    if version >= (4, 7):
        return ("low", "medium", "high", "xhigh", "max")
    if version == (4, 6):
        return ("low", "medium", "high", "max")
    return ("low", "medium", "high") if family == "opus" and version == (4, 5) else ()
