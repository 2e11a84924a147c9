"""Translates the parameters of a request to `generationConfig`
(https://ai.google.dev/api/generate-content#generationconfig)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from integrations.providers.common.parameters import Mapped, ResponseFormat, max_tokens, response_format, stop_sequences
from integrations.providers.google.field_names import camel, spellings
from integrations.providers.google.models import Model
from integrations.providers.google.schema import google_schema, is_own
from integrations.providers.google.thinking import thinking_config

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


def generation_config(mapped: Mapped, model: Model) -> dict[str, Any]:
    """Returns `generationConfig`. Settings in Google's own words take precedence over translated ones. Raises
    UnsupportedParameterError."""
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
    """Returns the format of an answer in Cohere's form, which has the schema beside `json_object`:
    https://docs.cohere.com/docs/structured-outputs."""
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
