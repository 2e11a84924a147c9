"""The body is the client's own bytes if Mistral knows every field; else fields are translated or left out.

Mistral answers 422 (`extra_forbidden`) to an unknown field, so fields that OpenAI has and Mistral lacks must not be
sent. Fields that neither has are the vendor's new ones and pass, except to a provider that the client did not choose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from integrations.providers.base import ChatRequest
from integrations.providers.common.parameters import THINKING_OFF, Mapped, check_reasoning_words
from integrations.providers.mistral.messages import mistral_messages

Raw = dict[str, msgspec.Raw]

# The gateway has acted on its own fields, and Mistral does without the other ones what they ask for (usage comes with
# every stream).
_NOT_SENT = ("models", "provider", "prompt_config", "prompt_variables", "stream_options")

# The fields are listed at https://docs.mistral.ai/api/#tag/chat/operation/chat_completion_v1_chat_completions_post
NATIVE = frozenset(
    {
        "model", "messages", "temperature", "top_p", "max_tokens", "stream", "stop", "random_seed", "metadata",
        "response_format", "tools", "tool_choice", "presence_penalty", "frequency_penalty", "min_tokens",
        "repetition_penalty", "top_k", "logprobs", "top_logprobs", "prompt_logprobs", "top_prompt_logprobs", "n",
        "prediction", "parallel_tool_calls", "reasoning_effort", "prompt_mode", "guardrails", "prompt_cache_key",
        "service_tier", "safe_prompt",
    }
)  # fmt: skip

# Mistral has no counterpart for some fields of OpenAI; without them the answer is of the same kind.
DROPPED = frozenset(
    {
        "user", "store", "logit_bias", "verbosity", "safety_identifier", "prompt_cache_retention",
        "prompt_cache_options", "moderation",
    }
)  # fmt: skip

_SERVICE_TIERS = ("auto", "standard_only")
_MAX_TEMPERATURE = 1.5
_NO_PARAMETERS: Mapping[str, Any] = {"type": "object", "properties": {}}
_FUNCTION_FIELDS = ("name", "description", "parameters", "strict")
# `reasoning_effort` switches the reasoning of Mistral's adjustable models, except those released before March 2026 (by
# the date in the name): https://docs.mistral.ai/capabilities/reasoning/adjustable
_ADJUSTABLE = ("mistral-small", "mistral-medium", "mistral-vibe", "mistral-large-4")
_ADJUSTABLE_SINCE = 2603
_ALWAYS_REASONING = "magistral"

_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode
_ANY = msgspec.Raw(b'"any"')


def build_body(request: ChatRequest, *, provider: str) -> tuple[bytes, tuple[str, ...]]:
    sent = _decode(request.body)
    raw = {name: value for name, value in sent.items() if _is_sent(name, value)}
    # The object only collects warnings: values are read as bytes, since `request.fields` may be lazy.
    mapped = Mapped(provider, request.fields, is_translated=request.is_translated)
    _model(raw, request)
    for translate in _TRANSLATIONS:
        translate(raw, request, mapped)
    _unknown(raw, request, mapped)
    messages = mistral_messages(raw["messages"], mapped, keep_bare_thinking=_reasons(raw, request.model))
    if messages is not None:
        raw["messages"] = messages
    unchanged = raw.keys() == sent.keys() and all(raw[name] is sent[name] for name in raw)
    return (request.body if unchanged else _encode(raw)), tuple(mapped.notes)


def is_adjustable(model: str) -> bool:
    date = model.rpartition("-")[2]
    too_old = len(date) == 4 and date.isdecimal() and int(date) < _ADJUSTABLE_SINCE
    return model.startswith(_ADJUSTABLE) and not too_old


def _reasons(raw: Raw, model: str) -> bool:
    if model.startswith(_ALWAYS_REASONING):
        return True
    return is_adjustable(model) and bytes(raw.get("reasoning_effort", b'"none"')) != b'"none"'


def _is_sent(name: str, value: msgspec.Raw) -> bool:
    """False for a null: OpenAI's dialect reads it as absent, and Mistral refuses some. In `prompt_mode` a null is a
    value."""
    return name not in _NOT_SENT and (bytes(value) != b"null" or name == "prompt_mode")


def _model(raw: Raw, request: ChatRequest) -> None:
    model = _encode(request.model)
    if bytes(raw.get("model", b"")) != model:
        raw["model"] = msgspec.Raw(model)


def _renamed(raw: Raw, request: ChatRequest, mapped: Mapped) -> None:
    limit = raw.pop("max_completion_tokens", None)
    if limit is not None:
        raw["max_tokens"] = limit
    seed = raw.pop("seed", None)
    if seed is not None and "random_seed" not in raw:
        raw["random_seed"] = seed


def _kind_of_answer(raw: Raw, request: ChatRequest, mapped: Mapped) -> None:
    if "web_search_options" in raw:
        raise mapped.refuse("web_search_options", "Mistral's chat completions do not search the web")
    modalities = msgspec.json.decode(raw.pop("modalities")) if "modalities" in raw else []
    if "audio" in modalities or ("audio" in raw and raw.pop("audio")):
        raise mapped.refuse("modalities", "Mistral's chat models do not answer with sound")


def _service_tier(raw: Raw, request: ChatRequest, mapped: Mapped) -> None:
    tier = msgspec.json.decode(raw["service_tier"]) if "service_tier" in raw else "auto"
    if tier not in _SERVICE_TIERS:
        del raw["service_tier"]
        if tier != "default":
            mapped.drop("service_tier", "Mistral knows auto and standard_only")


def _temperature(raw: Raw, request: ChatRequest, mapped: Mapped) -> None:
    """OpenAI's temperatures go up to 2. A client that chose Mistral gets its error; on a fallback the value is
    fitted.
    """
    if request.is_foreign and "temperature" in raw and msgspec.json.decode(raw["temperature"]) > _MAX_TEMPERATURE:
        raw["temperature"] = msgspec.Raw(_encode(_MAX_TEMPERATURE))
        mapped.notes.append(f"temperature: lowered to {_MAX_TEMPERATURE}, mistral takes no more")


def _thinking(raw: Raw, request: ChatRequest, mapped: Mapped) -> None:
    """The only counterpart of `thinking` is the level of models whose reasoning can be switched."""
    adjustable = is_adjustable(request.model)
    if "thinking" in raw:
        thinking = msgspec.json.decode(raw.pop("thinking"))
        check_reasoning_words(thinking, None, provider=mapped.provider)
        enabled = isinstance(thinking, Mapping) and thinking.get("type") not in THINKING_OFF
        reasons = adjustable or request.model.startswith(_ALWAYS_REASONING)
        if adjustable:
            raw.setdefault("reasoning_effort", msgspec.Raw(b'"high"' if enabled else b'"none"'))
        elif reasons:
            _thinking_of_magistral(raw, enabled, mapped)
        elif enabled:
            mapped.drop("thinking", f"{request.model} does not reason on request")
        if reasons or not enabled:
            _warn_about_settings(thinking, mapped)
    if request.is_foreign and "reasoning_effort" in raw and not adjustable:
        # The level is meant for another vendor's model; Mistral would refuse it with 400.
        del raw["reasoning_effort"]
        mapped.drop("reasoning_effort", f"{request.model} has no levels")


def _warn_about_settings(thinking: Any, mapped: Mapped) -> None:
    """Mistral's reasoning is only on or off, so budgets and other settings are dropped with warnings."""
    for name, value in thinking.items() if isinstance(thinking, Mapping) else ():
        if name != "type" and value is not None:
            mapped.drop(f"thinking.{name}")


def _thinking_of_magistral(raw: Raw, enabled: bool, mapped: Mapped) -> None:
    if enabled:
        raw.setdefault("prompt_mode", msgspec.Raw(b'"reasoning"'))
    else:
        mapped.drop("thinking", "Magistral models always reason")


def _tools(raw: Raw, request: ChatRequest, mapped: Mapped) -> None:
    choice = msgspec.json.decode(raw["tool_choice"]) if "tool_choice" in raw else None
    allowed = _tool_choice(raw, choice, mapped)
    if "tools" not in raw:
        return
    tools = msgspec.json.decode(raw["tools"])
    translated = [_tool(tool, mapped) for tool in tools if allowed is None or _name_of(tool) in allowed]
    if tools and not translated:
        raise mapped.refuse("tool_choice", "allows only tools that are not there")
    if translated != tools:
        raw["tools"] = msgspec.Raw(_encode(translated))


def _tool_choice(raw: Raw, choice: Any, mapped: Mapped) -> set[str] | None:
    if choice == "required":
        raw["tool_choice"] = _ANY
    if not isinstance(choice, Mapping) or choice.get("type") == "function":
        return None
    allowed = choice.get("allowed_tools")
    if choice.get("type") != "allowed_tools" or not isinstance(allowed, Mapping):
        raise mapped.refuse("tool_choice", "expected none, auto, required or a specific function")
    raw["tool_choice"] = _ANY if allowed.get("mode") == "required" else msgspec.Raw(b'"auto"')
    return {_name_of(tool) for tool in allowed.get("tools") or ()}


def _name_of(tool: Any) -> str:
    function = tool.get("function") if isinstance(tool, Mapping) else None
    return str(function.get("name") or "") if isinstance(function, Mapping) else ""


def _tool(tool: Any, mapped: Mapped) -> Any:
    kind = tool.get("type", "function")
    if kind == "custom":
        raise mapped.refuse("tools", "Mistral has no custom tools, only functions")
    function = tool.get("function")
    if kind != "function" or not isinstance(function, Mapping):
        # The tool is the vendor's own (connectors, document libraries), or one that the vendor will refuse.
        return tool
    fields = {name: function[name] for name in _FUNCTION_FIELDS if function.get(name) is not None}
    fields.setdefault("parameters", _NO_PARAMETERS)
    return {"type": "function", "function": fields}


def _prediction(raw: Raw, request: ChatRequest, mapped: Mapped) -> None:
    """OpenAI's expected text has parts; Mistral's is a string."""
    prediction = msgspec.json.decode(raw["prediction"]) if "prediction" in raw else None
    content = prediction.get("content") if isinstance(prediction, Mapping) else None
    if isinstance(content, list):
        text = "".join(str(part.get("text") or "") for part in content if isinstance(part, Mapping))
        raw["prediction"] = msgspec.Raw(_encode({"type": "content", "content": text}))


def _unknown(raw: Raw, request: ChatRequest, mapped: Mapped) -> None:
    for name in [name for name in raw if name not in NATIVE]:
        if name in DROPPED or (request.is_foreign and name not in request.own_parameters):
            value = msgspec.json.decode(raw.pop(name))
            if value:  # A `store: false` has no effect, so it needs no warning.
                mapped.drop(name)


_TRANSLATIONS: tuple[Callable[[Raw, ChatRequest, Mapped], None], ...] = (
    _renamed,
    _kind_of_answer,
    _service_tier,
    _temperature,
    _thinking,
    _tools,
    _prediction,
)
