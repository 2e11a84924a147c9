"""https://platform.claude.com/docs/en/build-with-claude/thinking, …/extended-thinking#feature-compatibility,
…/effort
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from integrations.providers.anthropic.models import Rules
from integrations.providers.common.parameters import (
    EFFORT_BUDGETS,
    THINKING_TYPES,
    Mapped,
    ReasoningRequest,
    budget_of,
    effort_of,
    reasoning_request,
)

_MIN_BUDGET = 1024
_DEFAULT_BUDGET = EFFORT_BUDGETS["medium"]
# Where the client sets no limit, 4,096 tokens are left for the answer itself, which every Claude can write.
_ROOM_FOR_ANSWER = 4096
# At most three quarters of the client's limit go to thinking, since a budget of all but one token leaves no room for an
# answer.
_MAX_SHARE_OF_LIMIT = 3 / 4
# With thinking `top_p` must be at least 0.95.
_MIN_TOP_P = 0.95
_FORCED = ("any", "tool")
# The fields are described at https://platform.claude.com/docs/en/api/messages/create#create.thinking
_SETTINGS = ("display", "block_binding")
_FIELDS = ("type", "budget_tokens", *_SETTINGS)
# For OpenAI's levels of effort that Claude names differently or lacks in some generations, the nearest levels are tried
# in order.
_NEXT_EFFORTS = {"minimal": ("low",), "xhigh": ("xhigh", "high"), "max": ("max", "high")}

Json = dict[str, Any]


@dataclass(slots=True)
class ThinkingSettings:
    """None leaves thinking to the model's default. `max_tokens` includes the thinking."""

    thinking: Json | None
    effort: str
    max_tokens: int

    @property
    def thinks(self) -> bool:
        return self.thinking is not None and self.thinking["type"] in ("enabled", "adaptive")


def thinking_settings(
    mapped: Mapped, rules: Rules, max_tokens: int | None, *, choice: Json | None, without_thinking: bool
) -> ThinkingSettings:
    """`max_tokens` is None if the client set no limit. `without_thinking`: the model continues a tool loop that began
    without thinking."""
    reasoning = reasoning_request(mapped, own_thinking=True)
    limit = output_limit(mapped, rules, max_tokens)
    if reasoning.enabled is None:
        return ThinkingSettings(None, "", limit)
    native = mapped.fields.get("thinking")
    if isinstance(native, Mapping) and native.get("type") in THINKING_TYPES:
        native = _known(mapped, native)
    elif isinstance(native, Mapping):
        return ThinkingSettings(dict(native), _effort(reasoning, rules), limit)  # The vendor judges an unknown type.
    if not reasoning.enabled:
        return ThinkingSettings(_off(mapped, rules, native), "", limit)
    if rules.thinking == "none":
        mapped.drop(_named(native), "this model cannot think aloud")
        return ThinkingSettings(None, "", limit)
    if rules.thinking == "adaptive" or (rules.thinking == "both" and not _has_budget(reasoning)):
        return ThinkingSettings(_adaptive(mapped, rules, native), _effort(reasoning, rules), limit)
    problem = _conflict(choice, without_thinking)
    if problem:
        mapped.drop(_named(native), problem)
        return ThinkingSettings(None, "", limit)
    return _manual(mapped, rules, reasoning, native, limit, is_given=max_tokens is not None)


def sampling(mapped: Mapped, rules: Rules, *, thinks: bool) -> Json:
    temperature, top_p, top_k = mapped.take("temperature"), mapped.take("top_p"), mapped.take("top_k")
    if temperature is not None and temperature > 1:
        mapped.notes.append("temperature: lowered to 1, the highest that anthropic takes")
        temperature = 1
    problem = _no_sampling(rules, thinks=thinks)
    if problem:
        _drop_unless(mapped, "temperature", temperature, 1, problem)
        _drop_unless(mapped, "top_k", top_k, None, problem)
        if top_p is not None and (not rules.sampling or top_p < _MIN_TOP_P):
            _drop_unless(mapped, "top_p", top_p, 1, problem)
            top_p = None
        temperature = 1 if temperature == 1 and rules.sampling else None
        top_k = None
    if temperature is not None and top_p is not None and not rules.both_sampling:
        _drop_unless(mapped, "top_p", top_p, 1, "this model takes temperature or top_p, not both")
        top_p = None
    chosen = {"temperature": temperature, "top_p": top_p, "top_k": top_k}
    return {name: value for name, value in chosen.items() if value is not None}


def output_limit(mapped: Mapped, rules: Rules, max_tokens: int | None) -> int:
    if max_tokens is None:
        return rules.max_output or _ROOM_FOR_ANSWER
    if rules.max_output is not None and max_tokens > rules.max_output:
        mapped.notes.append(f"max_tokens: lowered to {rules.max_output}, the most this model writes")
        return rules.max_output
    return max_tokens


def _has_budget(reasoning: ReasoningRequest) -> bool:
    return reasoning.budget_tokens is not None and not reasoning.adaptive


def _off(mapped: Mapped, rules: Rules, native: Any) -> Json | None:
    if rules.thinking == "none":
        return None
    if not rules.off:
        mapped.drop(_named(native), "this model always thinks")
        return None
    if not rules.is_known and isinstance(native, Mapping):
        return dict(native)
    if isinstance(native, Mapping) or rules.thinks_by_default:
        if _settings(native):
            mapped.drop("thinking", f"settings do not go with {rules.off!r}")
        return {"type": rules.off}
    return None


def _adaptive(mapped: Mapped, rules: Rules, native: Any) -> Json:
    if isinstance(native, Mapping) and native.get("type") == "adaptive":
        return dict(native)
    if isinstance(native, Mapping) and native.get("budget_tokens") is not None:
        mapped.drop("thinking.budget_tokens", "this model decides itself how long it thinks; its effort is set instead")
    # A client that asks for reasoning in the gateway's words expects to get its text.
    shown = {"display": "summarized"} if rules.hides_thinking else {}
    return {"type": "adaptive", **shown, **_settings(native)}


def _effort(reasoning: ReasoningRequest, rules: Rules) -> str:
    if not reasoning.effort and reasoning.budget_tokens is None:
        return ""
    effort = effort_of(reasoning)
    return next((level for level in _NEXT_EFFORTS.get(effort, (effort,)) if level in rules.efforts), "")


def _conflict(choice: Json | None, without_thinking: bool) -> str:
    if choice is not None and choice["type"] in _FORCED:
        return "it does not go with a forced tool"
    return "the tool call that is being answered came without it" if without_thinking else ""


def _manual(
    mapped: Mapped, rules: Rules, reasoning: ReasoningRequest, native: Any, limit: int, *, is_given: bool
) -> ThinkingSettings:
    requested = max(_MIN_BUDGET, budget_of(reasoning) or _DEFAULT_BUDGET)
    if rules.max_output is None and not is_given:
        limit = requested + _ROOM_FOR_ANSWER
    budget = min(requested, int(limit * _MAX_SHARE_OF_LIMIT) if is_given else limit - _ROOM_FOR_ANSWER)
    if is_given and reasoning.budget_tokens is not None and requested < limit:
        budget = requested  # The client chose both the budget and the limit, so the budget is kept.
    if budget < _MIN_BUDGET:
        mapped.drop(_named(native), f"max_tokens leaves no room for the least budget, {_MIN_BUDGET}")
        return ThinkingSettings(None, "", limit)
    if budget != (reasoning.budget_tokens or budget):
        mapped.notes.append(
            f"thinking.budget_tokens: set to {budget}, it has to be {_MIN_BUDGET} and leave room below max_tokens"
        )
    elif budget < requested:
        mapped.notes.append(f"reasoning_effort: {budget} tokens to think with, the limit on tokens leaves no more")
    thinking = {"type": "enabled", "budget_tokens": budget, **_settings(native)}
    return ThinkingSettings(thinking, reasoning.effort if reasoning.effort in rules.efforts else "", limit)


def _no_sampling(rules: Rules, *, thinks: bool) -> str:
    if not rules.sampling:
        return "this model has no sampling parameters"
    return "it does not go with thinking" if thinks else ""


def _drop_unless(mapped: Mapped, name: str, value: Any, default: Any, reason: str) -> None:
    if value is not None and value != default:
        mapped.drop(name, reason)


def _known(mapped: Mapped, native: Mapping[str, Any]) -> Json:
    """`thinking` without unknown fields, which the vendor refuses; warnings name them."""
    for name, value in native.items():
        if name not in _FIELDS and value is not None:
            mapped.drop(f"thinking.{name}")
    return {name: value for name, value in native.items() if name in _FIELDS}


def _settings(native: Any) -> Json:
    given = native if isinstance(native, Mapping) else {}
    return {name: given[name] for name in _SETTINGS if given.get(name) is not None}


def _named(native: Any) -> str:
    return "thinking" if isinstance(native, Mapping) else "reasoning_effort"
