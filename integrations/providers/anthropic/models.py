"""The parameters that a generation of Claude accepts, derived from the model's name.

Sources: https://platform.claude.com/docs/en/build-with-claude/thinking, …/effort, …/structured-outputs,
…/mid-conversation-system-messages and the migration guides of the models. A name without a version gets the most
permissive rules, and the vendor decides. The exception is mid-conversation instructions, which then go the way every
model accepts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from integrations.providers.common.claude import UNKNOWN, Version, family_and_version, takes_forced_tools, thinking_off

# The models of generation 3.5 have a largest output of 8,192 tokens, which some of the catalogs no longer list.
_MAX_OUTPUT_3_5 = 8192

Thinking = Literal["none", "manual", "both", "adaptive"]


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a generation.

    `max_output`: the most tokens in an answer, None if unknown. `thinking`: how thinking is requested (a budget, or the
    model decides); `off`: the `type` that turns it off, empty if nothing can; `hides_thinking`: its text is omitted
    unless requested. `efforts`: the levels of `output_config.effort`. `sampling`: temperature, `top_p` and `top_k` may
    be set; `both_sampling`: temperature together with `top_p`. `schema`: answers and tool arguments can follow a
    schema. `instructions_in_place`: `system` messages may stand among the others. `is_known`: the name shows the
    generation.
    """

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
    """`max_output` is the listed limit of the model's answers, in tokens."""
    family, version = family_and_version(model)
    if version == UNKNOWN:
        efforts = _efforts("opus", (5, 0))
        return Rules(max_output, thinking="both", efforts=efforts, is_known=False)
    adaptive_only = version >= (4, 7)
    return Rules(
        max_output=max_output or (_MAX_OUTPUT_3_5 if version == (3, 5) else None),
        thinking=_thinking(version),
        off=thinking_off(family, version),
        thinks_by_default=version >= (5, 0),
        hides_thinking=adaptive_only,
        efforts=_efforts(family, version),
        sampling=not adaptive_only,
        both_sampling=version < (4, 5) and not (family == "opus" and version == (4, 1)),
        forced_tools=takes_forced_tools(family, version),
        schema=version >= (4, 5) or (family == "opus" and version == (4, 1)),
        instructions_in_place=version >= (4, 8),
    )


def _thinking(version: Version) -> Thinking:
    if version < (3, 7):
        return "none"
    if version < (4, 6):
        return "manual"
    return "both" if version == (4, 6) else "adaptive"


def _efforts(family: str, version: Version) -> tuple[str, ...]:
    """https://platform.claude.com/docs/en/build-with-claude/effort"""
    if version >= (4, 7):
        return ("low", "medium", "high", "xhigh", "max")
    if version == (4, 6):
        return ("low", "medium", "high", "max")
    return ("low", "medium", "high") if family == "opus" and version == (4, 5) else ()
