"""Writes Converse's `inferenceConfig`, and the parameters that Claude allows beside thinking."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from integrations.providers.bedrock.models import Model
from integrations.providers.bedrock.thinking import Thinking
from integrations.providers.common.parameters import Mapped, max_tokens, stop_sequences

_MIN_BUDGET = 1024
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
