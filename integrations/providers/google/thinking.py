"""Translates the request's settings of thinking to `thinkingConfig`
(https://ai.google.dev/gemini-api/docs/thinking)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from integrations.providers.common.parameters import Mapped, ReasoningRequest, reasoning_request
from integrations.providers.google.models import Level, Thinking

# The budgets are Google's for its OpenAI-compatible endpoint: https://ai.google.dev/gemini-api/docs/openai#thinking
_BUDGETS = {"minimal": 1024, "low": 1024, "medium": 8192, "high": 24576, "xhigh": 32768, "max": 32768}
_ORDER: tuple[Level, ...] = ("MINIMAL", "LOW", "MEDIUM", "HIGH", "XHIGH")
_LEVELS: dict[str, Level] = {
    "minimal": "MINIMAL",
    "low": "LOW",
    "medium": "MEDIUM",
    "high": "HIGH",
    "xhigh": "XHIGH",
    "max": "XHIGH",
}
# An effort may use three quarters of `maxOutputTokens`, which includes the thoughts, so that some is left for the
# answer.
_SHARE = 0.75
# The fields of Anthropic's `thinking`, and Cohere's name of the budget, that are translated.
_TRANSLATED = frozenset({"type", "budget_tokens", "token_budget", "display"})


def thinking_config(mapped: Mapped, thinking: Thinking, limit: int | None) -> dict[str, Any]:
    """Returns the settings. `limit` is the client's maximum of output tokens, None where it sets none. Raises
    UnsupportedParameterError for an unknown level or type."""
    reasoning = reasoning_request(mapped)
    if reasoning.enabled is None:
        return {}
    native = mapped.fields.get("thinking")
    native = native if isinstance(native, Mapping) else {}
    if reasoning.budget_tokens is None and isinstance(budget := native.get("token_budget"), int):
        reasoning = replace(reasoning, budget_tokens=budget)
    if thinking.by == "nothing" and reasoning.enabled:
        mapped.drop("thinking" if native else "reasoning_effort", "the model does not reason")
        return {}
    is_on = bool(reasoning.enabled) and reasoning.budget_tokens != 0
    _warn_about_settings(mapped, native, is_on=is_on)
    if not is_on:
        return _minimal_thinking(mapped, thinking)
    hidden = native.get("display") == "omitted"
    return {**({} if hidden else {"includeThoughts": True}), **_budget_or_level(mapped, reasoning, thinking, limit)}


def _warn_about_settings(mapped: Mapped, native: Mapping[str, Any], *, is_on: bool) -> None:
    for name, value in native.items():
        says_nothing = value is None or (name in _TRANSLATED and (is_on or name != "display"))
        if not says_nothing:
            mapped.drop(f"thinking.{name}")


def _minimal_thinking(mapped: Mapped, thinking: Thinking) -> dict[str, Any]:
    if thinking.by == "nothing":
        return {}
    if thinking.can_stop:
        return {"thinkingBudget": 0}
    if thinking.levels[0] != "MINIMAL" or thinking.by == "budget":
        mapped.drop("thinking: disabled", "the model always reasons; it was asked for as little as possible")
    return {"thinkingLevel": thinking.levels[0]} if thinking.by == "level" else {"thinkingBudget": thinking.budgets[0]}


def _budget_or_level(
    mapped: Mapped, reasoning: ReasoningRequest, thinking: Thinking, limit: int | None
) -> dict[str, Any]:
    """Returns the budget or level. A budget that the client set is kept if the limit is above it; models with levels
    accept one too, but not together with a level."""
    if reasoning.budget_tokens is not None:
        budget = _within(reasoning.budget_tokens, thinking)
        if limit is None or budget < limit:
            return {"thinkingBudget": budget}
        mapped.notes.append(f"thinking.budget_tokens: lowered, max_tokens is {limit} and counts the thoughts too")
        return _with_room(mapped, budget, thinking, limit)
    if thinking.by == "level":
        level = _level(reasoning.effort, thinking)
        return {"thinkingLevel": level} if level else {}
    # A budget of -1 lets the model decide (https://ai.google.dev/gemini-api/docs/thinking#set-budget).
    named = _BUDGETS.get(reasoning.effort)
    return {"thinkingBudget": -1} if named is None else _with_room(mapped, _within(named, thinking), thinking, limit)


def _with_room(mapped: Mapped, budget: int, thinking: Thinking, limit: int | None) -> dict[str, Any]:
    """Returns the budget, lowered to a share of the limit if it does not fit below it."""
    share = budget if limit is None else min(budget, int(limit * _SHARE))
    lowest = 1 if thinking.by == "level" else thinking.budgets[0]
    if share >= lowest:
        return {"thinkingBudget": share}
    problem = f"max_tokens leaves no room for the least budget, {lowest}"
    if thinking.can_stop:
        mapped.drop("thinking", problem)
        return {"thinkingBudget": 0}
    mapped.notes.append(f"thinking: {problem}; the answer may be empty")
    return {"thinkingBudget": lowest}


def _within(budget: int, thinking: Thinking) -> int:
    if thinking.by == "level":
        return budget
    lowest, highest = thinking.budgets
    return min(max(budget, lowest), highest)


def _level(effort: str, thinking: Thinking) -> Level | None:
    """Returns the model's level for the effort, or the next higher one that it has."""
    target = _LEVELS.get(effort)
    if target is None:
        return None
    above = _ORDER[_ORDER.index(target) :]
    return next((level for level in above if level in thinking.levels), thinking.levels[-1])
