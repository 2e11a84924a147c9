"""The parameters of a request as `generationConfig` (https://ai.google.dev/api/generate-content#generationconfig)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from integrations.providers.google.models import Level, Model, Thinking
from integrations.providers.google.names import camel, spellings
from integrations.providers.google.schemas import google_schema, is_own
from integrations.providers.parameters import (
    Mapped,
    ReasoningWish,
    max_tokens,
    reasoning_wish,
    response_format,
    stop_sequences,
)

_STOP_LIMIT = 5
_PLAIN = {
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "n": "candidateCount",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
}
# Google's own names, which clients may also use outside `generationConfig`. Those that are OpenAI's too are not here.
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
# Google's figures for its OpenAI-compatible endpoint: https://ai.google.dev/gemini-api/docs/openai#thinking
_BUDGETS = {"minimal": 1024, "low": 1024, "medium": 8192, "high": 24576, "xhigh": 32768, "max": 32768}
_LEVELS: dict[str, Level] = {
    "minimal": "MINIMAL",
    "low": "LOW",
    "medium": "MEDIUM",
    "high": "HIGH",
    "xhigh": "HIGH",
    "max": "HIGH",
}
_ORDER: tuple[Level, ...] = ("MINIMAL", "LOW", "MEDIUM", "HIGH")


def generation_config(mapped: Mapped, model: Model) -> dict[str, Any]:
    """What the client wrote in Google's own words wins over what is translated. Raises UnsupportedParameterError."""
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
    thinking = _thinking(mapped, reasoning_wish(mapped), model.thinking)
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
        # Google's is a signed 32-bit number, OpenAI's one of 64: what matters is that equal ones stay equal.
        config["seed"] = seed if -(2**31) <= seed < 2**31 else seed % 2**31


def _logprobs(mapped: Mapped, config: dict[str, Any]) -> None:
    wanted, alternatives = mapped.take("logprobs"), mapped.take("top_logprobs")
    if wanted is True:
        config["responseLogprobs"] = True
        if alternatives:
            config["logprobs"] = alternatives


def _modalities(mapped: Mapped, config: dict[str, Any]) -> None:
    wanted = mapped.take("modalities")
    if isinstance(wanted, list) and wanted:
        config["responseModalities"] = [str(modality).upper() for modality in wanted]


def _format(mapped: Mapped, config: dict[str, Any]) -> None:
    wish = response_format(mapped)
    if wish is None:
        return
    config["responseMimeType"] = "application/json"
    if wish.kind == "json_schema" and is_own(wish.schema):
        config["responseSchema"] = wish.schema
    elif wish.kind == "json_schema":
        schema = google_schema(wish.schema)
        if wish.description and "description" not in schema:
            schema = {"description": wish.description, **schema}
        config["responseJsonSchema"] = schema


def _thinking(mapped: Mapped, wish: ReasoningWish, thinking: Thinking) -> dict[str, Any]:
    if wish.enabled is None:
        return {}
    if thinking.by == "nothing":
        if wish.enabled:
            mapped.drop("reasoning_effort" if wish.effort else "thinking", "the model does not reason")
        return {}
    if not wish.enabled or wish.budget_tokens == 0:
        return _least(mapped, thinking)
    if wish.budget_tokens is not None:
        # Models that go by levels take a budget too, though not both.
        return {"includeThoughts": True, "thinkingBudget": _within(wish.budget_tokens, thinking)}
    if thinking.by == "level":
        level = _level(wish.effort, thinking)
        return {"includeThoughts": True, **({"thinkingLevel": level} if level else {})}
    # -1: the model decides (https://ai.google.dev/gemini-api/docs/thinking#set-budget).
    budget = _BUDGETS.get(wish.effort)
    return {"includeThoughts": True, "thinkingBudget": -1 if budget is None else _within(budget, thinking)}


def _least(mapped: Mapped, thinking: Thinking) -> dict[str, Any]:
    if thinking.can_stop:
        return {"thinkingBudget": 0}
    if thinking.levels[0] != "MINIMAL" or thinking.by == "budget":
        mapped.drop("thinking: disabled", "the model always reasons; it was asked for as little as possible")
    return {"thinkingLevel": thinking.levels[0]} if thinking.by == "level" else {"thinkingBudget": thinking.budgets[0]}


def _within(budget: int, thinking: Thinking) -> int:
    if thinking.by == "level":
        return budget
    lowest, highest = thinking.budgets
    return min(max(budget, lowest), highest)


def _level(effort: str, thinking: Thinking) -> Level | None:
    """The model's level for the effort, or the next higher that it has."""
    wanted = _LEVELS.get(effort)
    if wanted is None:
        return None
    above = _ORDER[_ORDER.index(wanted) :]
    return next((level for level in above if level in thinking.levels), thinking.levels[-1])


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
