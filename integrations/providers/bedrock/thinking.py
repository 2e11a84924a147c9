"""Translates `thinking` and `reasoning_effort` to the fields of each vendor's models, and writes Converse's
`inferenceConfig` with the parameters that they allow beside thinking.

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
from integrations.providers.common.claude import thinking_off
from integrations.providers.common.parameters import (
    EFFORT_BUDGETS,
    THINKING_OFF,
    Mapped,
    ReasoningRequest,
    budget_of,
    effort_of,
    max_tokens,
    reasoning_request,
    stop_sequences,
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
    """The levels of a model that takes one in the field `name`. `off`: the model thinks only on request, so nothing is
    sent to turn it off; other models always think."""

    name: str
    levels: Mapping[str, str]
    off: bool = False


def thinking_of(mapped: Mapped, model: Model) -> Thinking:
    """Raises UnsupportedParameterError for an unknown level that must be translated; Claude judges its own
    `thinking`.
    """
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
        off = thinking_off(model.family, model.version)
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


# The limit of output tokens is at least 1.25 times a thinking budget, so that a fifth of it is left for the answer
# (OpenRouter's share for `high`).
_LIMIT_PER_BUDGET = 1.25
# From Claude 4.1 a model takes one of temperature and top_p, and later versions take neither:
# https://docs.claude.com/en/docs/about-claude/models/migrating-to-claude-4
_EITHER_SAMPLING_SINCE = (4, 1)
_NO_SAMPLING_SINCE = (4, 7)
_MIN_TOP_P = 0.95
_BOUNDS = ("max_tokens", "max_completion_tokens", "temperature", "top_p")


def inference_config(mapped: Mapped, model: Model, thinking: Thinking) -> dict[str, Any]:
    """Returns limits and sampling; a value that equals the model's default is left out without a warning where it must
    not be sent."""
    config: dict[str, Any] = {}
    limit = max_tokens(mapped)
    if limit is not None:
        config["maxTokens"] = limit
    config |= _sampling(mapped, model, thinking)
    # Claude refuses stop sequences of white space.
    stop = [sequence for sequence in stop_sequences(mapped) if sequence.strip() or not model.may_be_claude]
    if stop:
        config["stopSequences"] = stop
    if len(stop) < len(stop_sequences(mapped)):
        mapped.drop("stop", "a sequence of white space alone is refused")
    config.update(mapped.take("inferenceConfig") or {})
    return config


def _sampling(mapped: Mapped, model: Model, thinking: Thinking) -> dict[str, Any]:
    temperature, top_p = mapped.take("temperature"), mapped.take("top_p")
    config: dict[str, Any] = {}
    if temperature is not None:
        if temperature > 1:
            mapped.drop(f"temperature {temperature}", "Bedrock's highest is 1, which was sent")
            temperature = 1
        config["temperature"] = temperature
    if top_p is not None:
        config["topP"] = top_p
    if model.is_claude:
        _leave_out(mapped, model, thinking, config)
    return config


def _leave_out(mapped: Mapped, model: Model, thinking: Thinking, config: dict[str, Any]) -> None:
    if model.version >= _NO_SAMPLING_SINCE:
        for name, parameter in (("temperature", "temperature"), ("topP", "top_p")):
            if config.pop(name, 1) != 1:
                mapped.drop(parameter, f"{model.name} takes none")
        return
    if thinking.is_on:
        if config.pop("temperature", 1) != 1:
            mapped.drop("temperature", "it cannot be set while the model thinks")
        if config.get("topP", 1) < _MIN_TOP_P:
            del config["topP"]
            mapped.drop("top_p", f"beside thinking it is {_MIN_TOP_P} at least")
    if model.version >= _EITHER_SAMPLING_SINCE and "temperature" in config and config.pop("topP", 1) != 1:
        mapped.drop("top_p", f"{model.name} takes temperature or top_p, not both")


def fit_thinking(mapped: Mapped, thinking: Thinking, *, forced: bool, unsigned: bool) -> Thinking:
    """Returns thinking as Claude allows it in this request, or none with a warning
    (https://docs.claude.com/en/docs/build-with-claude/extended-thinking)."""
    if not thinking.budget:
        return thinking
    if forced:
        return _without(mapped, "a forced tool choice excludes thinking")
    if unsigned:
        return _without(mapped, "the tool call that the request continues was made without thinking")
    limit = max_tokens(mapped)
    room = thinking.budget + 1 if _is_own_budget(mapped) else thinking.budget * _LIMIT_PER_BUDGET
    if limit is None or limit >= room:
        return thinking
    budget = int(limit / _LIMIT_PER_BUDGET)
    if budget < _MIN_BUDGET:
        return _without(mapped, f"max_tokens leaves no room for a budget of {_MIN_BUDGET} and an answer")
    mapped.drop("thinking budget", f"lowered to {budget}, so that max_tokens leaves room for an answer")
    lowered = {**thinking.fields["thinking"], "budget_tokens": budget}
    return Thinking({**thinking.fields, "thinking": lowered}, thinking.effort)


def _is_own_budget(mapped: Mapped) -> bool:
    """Returns True when the client itself set a budget, which is kept when it is below the limit."""
    sent = mapped.fields.get("thinking")
    return isinstance(sent, Mapping) and sent.get("budget_tokens") is not None


def fit_effort(mapped: Mapped, thinking: Thinking) -> Thinking:
    """Returns the settings, with Nova's highest effort lowered to medium when limits or sampling are set, beside which
    Nova refuses it (https://docs.aws.amazon.com/nova/latest/nova2-userguide/extended-thinking.html)."""
    config = thinking.fields.get("reasoningConfig", {})
    bound = [name for name in _BOUNDS if mapped.fields.get(name) is not None]
    if config.get("maxReasoningEffort") != "high" or not bound:
        return thinking
    mapped.drop("reasoning_effort high", f"lowered to medium, since {bound[0]} is set")
    return Thinking({"reasoningConfig": {**config, "maxReasoningEffort": "medium"}})


def top_k(mapped: Mapped, model: Model, thinking: Thinking) -> dict[str, Any]:
    """Returns `top_k` in the field in which the model has it
    (https://docs.aws.amazon.com/nova/latest/userguide/using-converse-api.html)."""
    value = mapped.take("top_k")
    if value is None:
        return {}
    if model.is_claude and (thinking.is_on or model.version >= _NO_SAMPLING_SINCE):
        mapped.drop("top_k", f"{model.name} takes none here")
        return {}
    return {"inferenceConfig": {"topK": value}} if model.is_nova else {"top_k": value}


def _without(mapped: Mapped, reason: str) -> Thinking:
    mapped.drop("thinking", reason)
    return Thinking()
