"""Translates `thinking` and `reasoning_effort` to the fields of each vendor's models.

Claude: https://docs.aws.amazon.com/bedrock/latest/userguide/claude-messages-extended-thinking.html and
…/claude-messages-adaptive-thinking.html; Nova 2: https://docs.aws.amazon.com/nova/latest/nova2-userguide/; OpenAI's and
DeepSeek's models: `reasoning_effort`, as in the OpenAI dialect
(https://github.com/langchain-ai/langchain-aws/pull/1261); GLM and Qwen: `reasoning_config`, a level
(https://github.com/anomalyco/opencode/pull/28143, https://ai.pydantic.dev/models/bedrock/).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from integrations.providers.bedrock.models import Model
from integrations.providers.common.parameters import (
    EFFORT_BUDGETS,
    THINKING_OFF,
    Mapped,
    ReasoningRequest,
    budget_of,
    effort_of,
    reasoning_request,
)

_FIRST_THINKING = (3, 7)
_FIRST_ADAPTIVE = (4, 6)
# From version 4.7 Claude refuses a budget: https://docs.claude.com/en/docs/build-with-claude/adaptive-thinking
_ONLY_ADAPTIVE = (4, 7)
_MIN_BUDGET = 1024
_DEFAULT_BUDGET = EFFORT_BUDGETS["medium"]
# Vendors with three or two levels get the one nearest to each of OpenAI's levels.
_THREE_LEVELS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "high"}
_TWO_LEVELS = {**_THREE_LEVELS, "medium": "high"}
_KNOWN_TYPES = ("enabled", "adaptive", *THINKING_OFF)


@dataclass(slots=True)
class Thinking:
    """The fields of thinking. `fields` go to `additionalModelRequestFields`, `effort` to `outputConfig`."""

    fields: dict[str, Any] = field(default_factory=dict)
    effort: str = ""

    @property
    def is_on(self) -> bool:
        return self.fields.get("thinking", {}).get("type") in ("enabled", "adaptive")

    @property
    def budget(self) -> int:
        budget = self.fields.get("thinking", {}).get("budget_tokens")
        return budget if isinstance(budget, int) else 0


@dataclass(frozen=True, slots=True)
class _Levels:
    """The levels of a model that takes one in the field `name`. With `off` the model thinks only when asked to, so that
    nothing is sent to turn it off; the other models always think."""

    name: str
    levels: Mapping[str, str]
    off: bool = False


def thinking_of(mapped: Mapped, model: Model) -> Thinking:
    """Returns the fields of thinking. Raises UnsupportedParameterError for an unknown word that would have to be
    translated; in `thinking` only for models other than Claude, whose own field it is."""
    reasoning = reasoning_request(mapped, own_thinking=model.may_be_claude)
    sent = mapped.fields.get("thinking")
    if reasoning.enabled is None:
        return Thinking()
    if model.may_be_claude and isinstance(sent, Mapping) and not (model.is_claude and sent.get("type") in _KNOWN_TYPES):
        return Thinking({"thinking": dict(sent)}, reasoning.effort)
    if model.is_claude:
        return _claude(mapped, model, reasoning, sent if isinstance(sent, Mapping) else {})
    if model.is_nova and "nova-2" in model.name:
        return Thinking({"reasoningConfig": _nova(mapped, model, reasoning)})
    if (known := _levels(model)) is not None:
        return _level(mapped, model, reasoning, known)
    return _dropped(mapped, f"{model.name} has no counterpart")


def _levels(model: Model) -> _Levels | None:
    if model.vendor == "openai":
        return _Levels("reasoning_effort", _THREE_LEVELS if "gpt-oss" in model.name else {})
    if model.vendor == "deepseek" and ".v" in model.name:
        return _Levels("reasoning_effort", _THREE_LEVELS, off=True)
    if model.vendor == "zai":
        return _Levels("reasoning_config", _THREE_LEVELS)
    if model.vendor == "qwen" and "coder" not in model.name:
        return _Levels("reasoning_config", _TWO_LEVELS)
    return None


def _level(mapped: Mapped, model: Model, reasoning: ReasoningRequest, known: _Levels) -> Thinking:
    if reasoning.enabled:
        effort = _effort(mapped, model, reasoning)
        return Thinking({known.name: known.levels.get(effort, effort)})
    if known.off:
        return Thinking()
    if not known.levels:
        return Thinking({known.name: "none"})
    mapped.drop(_named(mapped), f"{model.name} always thinks; its lowest level was sent")
    return Thinking({known.name: "low"})


def _claude(mapped: Mapped, model: Model, reasoning: ReasoningRequest, sent: Mapping[str, Any]) -> Thinking:
    if model.version < _FIRST_THINKING:
        return _dropped(mapped, f"{model.name} does not think") if reasoning.enabled else Thinking()
    if not reasoning.enabled:
        off = model.thinking_off
        return Thinking({"thinking": {"type": off}}) if off else _dropped(mapped, f"{model.name} always thinks")
    # The other settings, such as `display`, are the vendor's own.
    more = {name: value for name, value in sent.items() if name not in ("type", "budget_tokens")}
    adaptive = reasoning.adaptive or reasoning.budget_tokens is None
    if model.version >= _ONLY_ADAPTIVE or (adaptive and model.version >= _FIRST_ADAPTIVE):
        if not adaptive:
            mapped.drop("thinking.budget_tokens", f"{model.name} decides itself; its effort is set instead")
        if model.version >= _ONLY_ADAPTIVE and sent.get("type") != "adaptive":
            # Newer Claude models omit the text of thoughts by default, and a client that asks for reasoning expects to
            # get it.
            more.setdefault("display", "summarized")
        return Thinking({"thinking": {"type": "adaptive", **more}}, _claude_effort(model, reasoning))
    budget = max(budget_of(reasoning) or _DEFAULT_BUDGET, _MIN_BUDGET)
    return Thinking({"thinking": {"type": "enabled", "budget_tokens": budget, **more}})


def _claude_effort(model: Model, reasoning: ReasoningRequest) -> str:
    if not reasoning.effort and reasoning.budget_tokens is None:
        return ""
    effort = effort_of(reasoning)
    if effort == "xhigh" and model.version < _ONLY_ADAPTIVE:
        return "max"
    return "low" if effort == "minimal" else effort


def _nova(mapped: Mapped, model: Model, reasoning: ReasoningRequest) -> dict[str, Any]:
    if not reasoning.enabled:
        return {"type": "disabled"}
    effort = _effort(mapped, model, reasoning)
    return {"type": "enabled", "maxReasoningEffort": _THREE_LEVELS.get(effort, "high")}


def _effort(mapped: Mapped, model: Model, reasoning: ReasoningRequest) -> str:
    """Returns the level of effort; other settings of `thinking` cannot be expressed as a level and are named in
    warnings."""
    sent = mapped.fields.get("thinking")
    for name, value in sent.items() if isinstance(sent, Mapping) else ():
        if name != "type" and value is not None:
            mapped.drop(f"thinking.{name}", f"{model.name} takes a level")
    return effort_of(reasoning)


def _named(mapped: Mapped) -> str:
    return "thinking" if mapped.fields.get("thinking") is not None else "reasoning_effort"


def _dropped(mapped: Mapped, reason: str) -> Thinking:
    for name in ("thinking", "reasoning_effort"):
        if mapped.fields.get(name) is not None:
            mapped.drop(name, reason)
    return Thinking()
