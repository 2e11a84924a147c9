"""https://docs.cohere.com/reference/chat"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from integrations.providers.base import ChatRequest
from integrations.providers.cohere.messages import Messages
from integrations.providers.common import parameters
from integrations.providers.common.parameters import FunctionTool, Mapped, ReasoningRequest

# `_SAME` holds fields that OpenAI and Cohere name alike, `_NATIVE` fields that only Cohere has.
_SAME = ("temperature", "seed", "logprobs")
_PENALTIES = ("frequency_penalty", "presence_penalty")
_NATIVE = ("citation_options", "safety_mode", "priority")
# Models without reasoning refuse `thinking`; an unknown model gets the client's value.
# https://docs.cohere.com/docs/reasoning
_NOT_REASONING = (
    "command-r",
    "command-light",
    "command-a-03",
    "command-a-translate",
    "command-a-vision",
    "c4ai-",
    "aya-",
)
_THINKING = ("type", "budget_tokens", "token_budget")
# At most four fifths of the client's limit go to thinking, so that some is left for the answer.
_MAX_SHARE_OF_LIMIT = 0.8
_encode = msgspec.json.Encoder().encode


def build_body(request: ChatRequest, *, provider: str) -> tuple[bytes, tuple[str, ...]]:
    mapped = Mapped(provider, request.fields, is_translated=request.is_translated)
    _refuse_other_kinds(mapped)
    reasons = not request.model.startswith(_NOT_REASONING)
    messages = Messages(mapped, request.media, keep_thinking=reasons)
    body: dict[str, Any] = {
        "model": request.model,
        "messages": messages.translated(request.fields["messages"]),
        "stream": request.stream,
    }
    _documents(body, mapped, messages)
    _tools(body, mapped)
    _response_format(body, mapped)
    _sampling(body, mapped)
    _thinking(body, mapped, request.model, reasons)
    for name in (*_SAME, *_NATIVE):
        _set(body, name, mapped.take(name))
    return _encode(body), mapped.warnings()


def _set(body: dict[str, Any], name: str, value: Any) -> None:
    if value is not None:
        body[name] = value


def _refuse_other_kinds(mapped: Mapped) -> None:
    if (mapped.take("n") or 1) > 1:
        raise mapped.refuse("n", "Cohere gives one answer a request")
    modalities = mapped.take("modalities") or []
    if not isinstance(modalities, list):
        raise mapped.refuse("modalities", "expected a list")
    if mapped.take("audio") or "audio" in modalities:
        raise mapped.refuse("modalities", "Cohere does not answer with sound")
    if mapped.take("web_search_options") is not None:
        # Version 2 no longer has connectors: https://docs.cohere.com/docs/migrating-v1-to-v2
        raise mapped.refuse("web_search_options", "Cohere does not search the web")


def _documents(body: dict[str, Any], mapped: Mapped, messages: Messages) -> None:
    documents = [*(mapped.take("documents") or ()), *messages.documents]
    if documents:
        body["documents"] = documents


def _tools(body: dict[str, Any], mapped: Mapped) -> None:
    functions, others = parameters.function_tools(mapped)
    if others:
        raise mapped.refuse("tools", f"Cohere has no tools of type {others[0].get('type')!r}")
    choice = parameters.tool_choice(mapped)
    if mapped.take("parallel_tool_calls") is False:
        mapped.drop("parallel_tool_calls")
    strict = mapped.take("strict_tools")
    if not functions:
        return
    if choice is not None:
        names = (choice.function,) if choice.kind == "function" else choice.allowed
        functions = [function for function in functions if not names or function.name in names]
        if not functions:
            raise mapped.refuse("tool_choice", "names a function that is not among the tools")
        if choice.kind != "auto":
            # Cohere cannot be told to call a certain function, so that function becomes the only tool of the request.
            body["tool_choice"] = "NONE" if choice.kind == "none" else "REQUIRED"
    body["tools"] = [_tool(function) for function in functions]
    _set(body, "strict_tools", _strict(functions, mapped) if strict is None else strict)


def _tool(function: FunctionTool) -> dict[str, Any]:
    described = {"description": function.description} if function.description else {}
    return {"type": "function", "function": {"name": function.name, **described, "parameters": function.parameters}}


def _strict(functions: list[FunctionTool], mapped: Mapped) -> bool | None:
    """Cohere applies strictness to all tools or none, and requires each to have a required parameter
    (https://docs.cohere.com/docs/structured-outputs#structured-outputs-tools)."""
    if not any(function.strict for function in functions):
        return None
    if all(function.strict and function.parameters.get("required") for function in functions):
        return True
    mapped.drop("tools.function.strict", "Cohere is strict about all tools or none")
    return None


def _response_format(body: dict[str, Any], mapped: Mapped) -> None:
    """Cohere follows every schema strictly: https://docs.cohere.com/docs/structured-outputs"""
    answer_format = parameters.response_format(mapped)
    if answer_format is None:
        return
    body["response_format"] = {"type": "json_object"}
    if answer_format.kind == "json_schema":
        body["response_format"]["json_schema"] = answer_format.described_schema
    elif isinstance(native := mapped.fields["response_format"].get("json_schema"), Mapping):
        body["response_format"]["json_schema"] = native  # The schema is in Cohere's own form.


def _sampling(body: dict[str, Any], mapped: Mapped) -> None:
    _set(body, "max_tokens", parameters.max_tokens(mapped))
    native = mapped.take("stop_sequences")
    _set(body, "stop_sequences", parameters.stop_sequences(mapped) or native)
    for name in _PENALTIES:
        _set(body, name, _penalty(name, mapped))
    for ours, theirs in (("top_p", "p"), ("top_k", "k")):
        value, native = mapped.take(ours), mapped.take(theirs)
        _set(body, theirs, value if native is None else native)


def _penalty(name: str, mapped: Mapped) -> float | None:
    """Cohere's penalties go from 0 to 1, OpenAI's from -2 to 2."""
    value: float | None = mapped.take(name)
    if value is None or 0 <= value <= 1:
        return value
    nearest = 0.0 if value < 0 else 1.0
    mapped.notes.append(f"{name}: {value} became {nearest:g}, {mapped.provider} takes 0 to 1")
    return nearest


def _thinking(body: dict[str, Any], mapped: Mapped, model: str, reasons: bool) -> None:
    reasoning = parameters.reasoning_request(mapped)
    if reasoning.enabled is None:
        return
    if not reasons:
        if reasoning.enabled:
            mapped.drop("thinking" if mapped.fields.get("thinking") else "reasoning_effort", f"{model} does not reason")
        return
    for name in mapped.fields.get("thinking") or () if reasoning.enabled else ():
        if name not in _THINKING:
            mapped.drop(f"thinking.{name}")
    body["thinking"] = {"type": "enabled" if reasoning.enabled else "disabled"}
    budget = _native_budget(mapped) or _budget(mapped, reasoning, body.get("max_tokens"))
    if reasoning.enabled and budget:
        body["thinking"]["token_budget"] = budget


def _budget(mapped: Mapped, reasoning: ReasoningRequest, limit: int | None) -> int | None:
    """The token budget of thinking; None lets the model decide, as `max` asks for.

    The limit includes thoughts, so the budget is at most four fifths of it, unless the client sets a budget below the
    limit.
    """
    named = reasoning.budget_tokens
    if named is not None and (limit is None or named < limit):
        return named
    requested = None if named is None and reasoning.effort == "max" else parameters.budget_of(reasoning)
    if limit is None or not reasoning.enabled or (requested is None and reasoning.effort != "max"):
        return requested
    maximum = int(limit * _MAX_SHARE_OF_LIMIT)
    if requested is not None and requested <= maximum:
        return requested
    mapped.notes.append(f"thinking: {maximum} tokens to think with, the limit on tokens leaves no more")
    return maximum


def _native_budget(mapped: Mapped) -> int | None:
    thinking = mapped.fields.get("thinking")
    budget = thinking.get("token_budget") if isinstance(thinking, Mapping) else None
    return budget if isinstance(budget, int) else None
