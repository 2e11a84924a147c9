"""https://ai.google.dev/api/generate-content#generationconfig"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from integrations.providers.common.parameters import (
    Mapped,
    ReasoningRequest,
    ResponseFormat,
    max_tokens,
    reasoning_request,
    response_format,
    stop_sequences,
)
from integrations.providers.google.field_names import camel, spellings
from integrations.providers.google.models import Level, Model, Thinking
from integrations.providers.google.schema import google_schema, is_own

_STOP_LIMIT = 5
_PLAIN = {
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "n": "candidateCount",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
}
# Clients may also use Google's own names of settings outside `generationConfig`; names that OpenAI has too are left
# out.
_NATIVE = {
    spelling: name
    for spelling, name in spellings(
        (
            "audioTimestamp",
            "candidateCount",
            "enableAffectiveDialog",
            "enableEnhancedCivicAnswers",
            "frequencyPenalty",
            "imageConfig",
            "maxOutputTokens",
            "mediaResolution",
            "modelSelectionConfig",
            "presencePenalty",
            "responseJsonSchema",
            "responseLogprobs",
            "responseMimeType",
            "responseModalities",
            "responseSchema",
            "routingConfig",
            "speechConfig",
            "stopSequences",
            "thinkingConfig",
            "topK",
            "topP",
        )
    ).items()
    if spelling not in _PLAIN
}


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
    """`limit` is the client's maximum of output tokens, None if unset. Raises UnsupportedParameterError for an unknown
    level or type."""
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
    """Keeps a client's budget below the limit; models with levels accept one too, but not together with a level."""
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
    target = _LEVELS.get(effort)
    if target is None:
        return None
    above = _ORDER[_ORDER.index(target) :]
    return next((level for level in above if level in thinking.levels), thinking.levels[-1])


def generation_config(mapped: Mapped, model: Model) -> dict[str, Any]:
    """Settings in Google's own words take precedence over translated ones. Raises UnsupportedParameterError."""
    config: dict[str, Any] = {}
    for name, native in _PLAIN.items():
        if (value := mapped.take(name)) is not None:
            config[native] = value
    if (limit := max_tokens(mapped)) is not None:
        config["maxOutputTokens"] = limit
    _stop(mapped, config)
    _seed(mapped, config)
    _logprobs(mapped, config)
    _modalities(mapped, config)
    _format(mapped, config)
    thinking = thinking_config(mapped, model.thinking, config.get("maxOutputTokens"))
    if thinking:
        config["thinkingConfig"] = thinking
    return _with_native(mapped, config)


def _stop(mapped: Mapped, config: dict[str, Any]) -> None:
    stop = stop_sequences(mapped)
    if len(stop) > _STOP_LIMIT:
        raise mapped.refuse("stop", f"{mapped.provider} takes at most {_STOP_LIMIT} sequences")
    if stop:
        config["stopSequences"] = stop


def _seed(mapped: Mapped, config: dict[str, Any]) -> None:
    seed = mapped.take("seed")
    if isinstance(seed, int):
        # Google's seed is a signed 32-bit number and OpenAI's one of 64 bits, so it is reduced such that equal seeds
        # stay equal.
        config["seed"] = seed if -(2**31) <= seed < 2**31 else seed % 2**31


def _logprobs(mapped: Mapped, config: dict[str, Any]) -> None:
    logprobs, alternatives = mapped.take("logprobs"), mapped.take("top_logprobs")
    # Google's own field has the same name as OpenAI's and is a count.
    if isinstance(logprobs, int) and logprobs is not True:
        logprobs, alternatives = logprobs > 0, logprobs
    if logprobs:
        config["responseLogprobs"] = True
        if alternatives:
            config["logprobs"] = alternatives


def _modalities(mapped: Mapped, config: dict[str, Any]) -> None:
    modalities = mapped.take("modalities")
    if isinstance(modalities, list) and modalities:
        config["responseModalities"] = [str(modality).upper() for modality in modalities]


def _format(mapped: Mapped, config: dict[str, Any]) -> None:
    answer_format = _with_cohere_schema(mapped, response_format(mapped))
    if answer_format is None:
        return
    config["responseMimeType"] = "application/json"
    if answer_format.kind == "json_schema" and is_own(answer_format.schema):
        config["responseSchema"] = answer_format.schema
    elif answer_format.kind == "json_schema":
        schema = google_schema(answer_format.schema)
        if answer_format.description and "description" not in schema:
            schema = {"description": answer_format.description, **schema}
        config["responseJsonSchema"] = schema


def _with_cohere_schema(mapped: Mapped, answer_format: ResponseFormat | None) -> ResponseFormat | None:
    """Cohere's form has the schema beside `json_object`: https://docs.cohere.com/docs/structured-outputs"""
    is_object = answer_format is not None and answer_format.kind == "json_object"
    schema = mapped.fields["response_format"].get("json_schema") if is_object else None
    if not isinstance(schema, Mapping) or not schema:
        return answer_format
    inner = schema.get("schema")
    return ResponseFormat("json_schema", schema=inner if isinstance(inner, Mapping) else schema)


def _with_native(mapped: Mapped, config: dict[str, Any]) -> dict[str, Any]:
    native: dict[str, Any] = {}
    for name in mapped.fields:
        if name in _NATIVE and (value := mapped.take(name)) is not None:
            native[_NATIVE[name]] = value
    for name in ("generationConfig", "generation_config"):
        given = mapped.take(name)
        if isinstance(given, Mapping):
            native |= {camel(key): value for key, value in given.items()}
    if not native.keys().isdisjoint(("responseSchema", "responseJsonSchema")):
        config.pop("responseJsonSchema", None)
        config.pop("responseSchema", None)
    config |= native
    _refuse_audio(mapped, config.get("responseModalities"))
    return config


def _refuse_audio(mapped: Mapped, modalities: Any) -> None:
    if isinstance(modalities, list) and any(str(modality).upper() == "AUDIO" for modality in modalities):
        raise mapped.refuse("modalities", f"spoken answers of {mapped.provider} have no place in a chat completion")
