"""Translates top-level fields. Values that stay are never decoded. A dropped field is named in a warning; a field that
would change the answer's kind is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from integrations.providers.base import ChatRequest
from integrations.providers.common.parameters import (
    EFFORTS,
    OF_GEMINI,
    check_reasoning_words,
    has_filter,
)
from integrations.providers.openai.account import Account, RawFields
from integrations.providers.openai.cache_markers import fit_tools
from integrations.providers.openai.dialect import (
    COMMON_PARAMETERS,
    OPENAI_PARAMETERS,
    Dialect,
    History,
    Search,
    Thinking,
    is_one_of,
)
from integrations.providers.openai.limits import MAX_STOPS, MAX_TOOLS, fit_function, is_closed, with_word_json
from integrations.providers.openai.thinking import (
    effort_in,
    fit_either,
    fit_loop,
    is_enabled,
    thinking_in_common_words,
)

# The gateway has acted on its own fields, and no provider gets them.
OWN_FIELDS = ("models", "provider", "prompt_config", "prompt_variables")
# A fallback without audio, modalities or web search would give an answer of another kind.
_OTHER_KIND_FIELDS = ("audio", "modalities", "web_search_options")
# The fields of OpenAI's own that a server of an unknown kind gets. None is known to search the web.
_OF_OPEN_SERVERS = OPENAI_PARAMETERS - {"web_search_options"}
# A tool has these fields in the dialect; the markers are those that `fit_tools` has left.
_TOOL_FIELDS = frozenset({"type", "function", "custom", "cache_control", "prompt_cache_breakpoint"})
_SITES = "search_domain_filter"
_DEFAULT_EFFORTS = ("low", "medium", "high")
_NOT_CLOSED = "it needs a schema whose objects require all of their properties and allow no others"


def handled_fields(dialect: Dialect) -> frozenset[str]:
    """The fields that `adjust` handles on a direct request; without any of them it need not be called."""
    names = {*OWN_FIELDS, *dialect.drops, *dialect.ignores}
    if dialect.thinking is not Thinking.PASS:
        names.add("thinking")
    if dialect.thinking is Thinking.EITHER:
        names.add("reasoning_effort")
    if dialect.search is not Search.PASS:
        names.add("web_search_options")
    if not dialect.json_schema:
        names.add("response_format")
    if not dialect.tool_choice:
        names.add("tool_choice")
    if not dialect.choices:
        names.add("n")
    if not dialect.max_completion_tokens:
        names.add("max_completion_tokens")
    return frozenset(names)


def adjust(raw: RawFields, request: ChatRequest, dialect: Dialect) -> tuple[str, ...]:
    """Changes `raw` in place; returns the warnings. Raises UnsupportedParameterError."""
    for name in OWN_FIELDS:
        raw.pop(name, None)
    account = Account(raw, dialect)
    if "web_search_options" in raw:
        _fit_search(account, request)
    if request.is_foreign:
        _keep_known(account, request)
    for name in dialect.drops:
        account.drop(name)
    for name in dialect.ignores:
        account.ignore(name, is_foreign=request.is_foreign)
    _fit_thinking(account, request)
    _rename_limit(account, request)
    _check_kind(account)
    if not dialect.tool_choice and "tool_choice" in raw:
        _fit_tool_choice(account, request)
    return tuple(account.warnings)


def _keep_known(account: Account, request: ChatRequest) -> None:
    """Drops fields unknown to this vendor and not set by the integration: on a fallback, or from another protocol, they
    are another vendor's.

    A server of an unknown kind that the client addressed itself may know all that OpenAI does.
    """
    known = account.dialect.parameters | request.own_parameters
    if account.dialect.is_open and not request.crosses_vendor:
        known |= _OF_OPEN_SERVERS
    for name in [name for name in account.raw if name not in COMMON_PARAMETERS and name not in known]:
        if name in _OTHER_KIND_FIELDS and _has_settings(name, account.value(name)):
            raise account.refuse(name, f"{account.dialect.provider} does not know it")
        if request.is_translated and name in OF_GEMINI:
            del account.raw[name]
        else:
            account.drop(name)
    if "metadata" in account.raw and account.value("store") is not True:
        # OpenAI refuses the field unless the answer is stored
        # (https://platform.openai.com/docs/api-reference/chat/create).
        account.drop("metadata", "it needs store")
    _fit_tools(account)
    if account.dialect.parameters >= OPENAI_PARAMETERS:
        _fit_stop(account)
        _fit_answer_schema(account)
    _fit_json_mode(account)


def _fit_stop(account: Account) -> None:
    stop = account.value("stop")
    if isinstance(stop, list) and len(stop) > MAX_STOPS:
        account.set("stop", stop[:MAX_STOPS])
        account.warnings.append(f"stop: {len(stop)} became {MAX_STOPS}, {account.dialect.provider} takes no more")


def _fit_answer_schema(account: Account) -> None:
    """Drops `strict` if OpenAI would refuse the schema for it; the schema still describes the answer."""
    answer_format = account.value("response_format")
    held = answer_format.get("json_schema") if isinstance(answer_format, Mapping) else None
    if isinstance(held, Mapping) and held.get("strict") is True and not is_closed(held.get("schema")):
        kept = {name: value for name, value in held.items() if name != "strict"}
        account.set("response_format", {**answer_format, "json_schema": kept})
        account.warnings.append(f"response_format.json_schema.strict: dropped, {_NOT_CLOSED}")


def _fit_json_mode(account: Account) -> None:
    """Names JSON to the model where it shall answer in it. Groq, DeepSeek and Alibaba require this as OpenAI does, and
    it is true for every other vendor."""
    answer_format = account.value("response_format")
    if not isinstance(answer_format, Mapping) or answer_format.get("type") != "json_object":
        return
    messages = account.value("messages")
    if isinstance(messages, list) and (named := with_word_json(messages)) is not messages:
        account.set("messages", named)


def _fit_tools(account: Account) -> None:
    """Removes other vendors' fields beside the function. Refuses a vendor's own tool: the answer would differ without
    it."""
    tools = account.value("tools")
    if not isinstance(tools, list):
        return
    types = ("function", "custom") if account.dialect.parameters >= OPENAI_PARAMETERS else ("function",)
    for tool in tools:
        if isinstance(tool, Mapping) and (kind := tool.get("type", "function")) not in types:
            raise account.refuse("tools", f"{account.dialect.provider} has no tool of type {kind!r}")
    if len(tools) > MAX_TOOLS and account.dialect.parameters >= OPENAI_PARAMETERS:
        raise account.refuse("tools", f"{account.dialect.provider} takes {MAX_TOOLS} tools, and these are {len(tools)}")
    fitted = [_of_dialect(tool) for tool in fit_tools(tools, account.dialect)]
    if fitted != tools:
        account.set("tools", fitted)
        if sum(map(_is_strict, fitted)) < sum(map(_is_strict, tools)):
            account.warnings.append(f"tools.strict: dropped, {_NOT_CLOSED}")


def _of_dialect(tool: Any) -> Any:
    if not isinstance(tool, Mapping):
        return tool
    kept = {name: value for name, value in tool.items() if name in _TOOL_FIELDS}
    function = kept.get("function")
    return {**kept, "function": fit_function(function)} if isinstance(function, Mapping) else kept


def _is_strict(tool: Any) -> bool:
    function = tool.get("function") if isinstance(tool, Mapping) else None
    return isinstance(function, Mapping) and function.get("strict") is True


def _has_settings(name: str, value: Any) -> bool:
    if name == "web_search_options":
        return value is not None  # An empty object asks for a search with default settings.
    return bool(value) and not (name == "modalities" and value == ["text"])


def _fit_search(account: Account, request: ChatRequest) -> None:
    """OpenAI's chat completions have search only at search models; refuses a search from another protocol elsewhere
    (https://platform.openai.com/docs/guides/tools-web-search)."""
    if account.dialect.search is not Search.PASS:
        _translate_search(account)
    elif request.is_translated and account.dialect.parameters >= OPENAI_PARAMETERS and "search" not in request.model:
        raise account.refuse("web_search_options", f"{request.model} does not search the web by it")
    elif request.is_translated and has_filter(options := account.value("web_search_options")):
        _choose_sites(account, options.pop("filters"))
        account.set("web_search_options", options)


def _choose_sites(account: Account, filters: Mapping[str, Any]) -> None:
    """Perplexity's form: https://docs.perplexity.ai/guides/search-domain-filters"""
    if _SITES not in account.dialect.parameters:
        raise account.refuse("web_search_options", f"{account.dialect.provider} does not search chosen sites by it")
    shut_out = [f"-{site}" for site in filters.get("blocked_domains") or ()]
    account.set(_SITES, [*(filters.get("allowed_domains") or ()), *shut_out])


def _translate_search(account: Account) -> None:
    """Alibaba's field: https://www.alibabacloud.com/help/en/model-studio/web-search"""
    options = account.value("web_search_options")
    del account.raw["web_search_options"]
    if options is None:
        return
    if account.dialect.search is Search.REFUSE:
        raise account.refuse("web_search_options", f"{account.dialect.provider} does not search the web by it")
    if has_filter(options):
        raise account.refuse("web_search_options", f"{account.dialect.provider} does not search chosen sites by it")
    account.raw.setdefault("enable_search", msgspec.Raw(b"true"))
    for name in options if isinstance(options, Mapping) else ():
        account.warnings.append(f"web_search_options.{name}: dropped, {account.dialect.provider} has no counterpart")


def _fit_thinking(account: Account, request: ChatRequest) -> None:
    if account.dialect.thinking is Thinking.EITHER:
        fit_either(account, request)
    elif "thinking" in account.raw:
        _translate_thinking(account, request)
    if request.is_foreign:
        _fit_reasoning_model(account, request.family)
        if account.dialect.history is History.WITH_TOOLS:
            fit_loop(account, request.family)


def _translate_thinking(account: Account, request: ChatRequest) -> None:
    dialect, model, thinking = account.dialect, request.family, account.value("thinking")
    if dialect.thinking is Thinking.PASS:
        is_anothers = request.is_translated or (request.crosses_vendor and not dialect.is_open)
        if is_anothers and isinstance(thinking, Mapping):
            thinking_in_common_words(account, thinking)
        return
    if not isinstance(thinking, Mapping) or "reasoning" in account.raw:
        account.drop("thinking")
        return
    check_reasoning_words(thinking, None, provider=dialect.provider)
    takes_effort = dialect.thinking in (Thinking.EFFORT, Thinking.TOGGLE) and is_one_of(model, dialect.effort_models)
    if dialect.thinking is Thinking.ENABLE:
        _thinking_as_switch(account, thinking)
    elif (reasoning := _reasoning_object(dialect, thinking, model)) is not None:
        _replace(account, "reasoning", reasoning)
    elif not is_enabled(thinking) and is_one_of(model, dialect.optional_models):
        _replace(account, "reasoning_effort", "none")
    elif takes_effort:
        _thinking_as_effort(account, thinking)
    elif not is_enabled(thinking):
        del account.raw["thinking"]  # A model that does not reason needs no switch to turn reasoning off.
    else:
        account.drop("thinking", f"{model} has no counterpart")


def _reasoning_object(dialect: Dialect, thinking: Mapping[str, Any], model: str) -> dict[str, Any] | None:
    if dialect.thinking is Thinking.REASONING:
        return _openrouter_reasoning(thinking)
    if dialect.thinking is Thinking.REASONING_EFFORT and is_enabled(thinking):
        return {"effort": effort_in(thinking)}
    if dialect.thinking is Thinking.TOGGLE and is_one_of(model, dialect.toggle_models):
        return {"enabled": is_enabled(thinking)}
    return None


def _thinking_as_switch(account: Account, thinking: Mapping[str, Any]) -> None:
    """Alibaba's switch: https://www.alibabacloud.com/help/en/model-studio/deep-thinking"""
    if "enable_thinking" in account.raw:
        del account.raw["thinking"]  # The provider's own field already has the value.
        return
    _replace(account, "enable_thinking", is_enabled(thinking))
    budget = thinking.get("budget_tokens")
    if is_enabled(thinking) and isinstance(budget, int):
        account.set("thinking_budget", budget)


def _thinking_as_effort(account: Account, thinking: Mapping[str, Any]) -> None:
    if "reasoning_effort" in account.raw:
        del account.raw["thinking"]  # The provider's own field already has the value.
    elif is_enabled(thinking):
        _replace(account, "reasoning_effort", effort_in(thinking))
    else:
        account.drop("thinking", "the model always reasons")


def _replace(account: Account, name: str, value: Any) -> None:
    del account.raw["thinking"]
    account.set(name, value)


def _openrouter_reasoning(thinking: Mapping[str, Any]) -> dict[str, Any]:
    """https://openrouter.ai/docs/use-cases/reasoning-tokens"""
    budget = thinking.get("budget_tokens")
    if is_enabled(thinking) and isinstance(budget, int):
        return {"max_tokens": budget}
    return {"enabled": is_enabled(thinking)}


def _fit_reasoning_model(account: Account, model: str) -> None:
    """On a fallback, or from another protocol, the client could not know which parameters a reasoning model refuses. On
    a direct request the vendor reports them."""
    dialect = account.dialect
    if "reasoning_effort" in account.raw and dialect.effort_models and not is_one_of(model, dialect.effort_models):
        account.drop("reasoning_effort", f"{model} has no counterpart")
    elif "reasoning_effort" in account.raw and dialect.effort_models:
        _fit_effort(account, model)
    if is_one_of(model, dialect.reasoning_models):
        for name in dialect.sampling_refused:
            account.drop(name, f"{model} does not take it")
        if "max_tokens" in account.raw and dialect.max_completion_tokens:
            # The o-series models refuse the old name: https://platform.openai.com/docs/api-reference/chat/create
            limit = account.raw.pop("max_tokens")
            account.raw.setdefault("max_completion_tokens", limit)


def _fit_effort(account: Account, model: str) -> None:
    dialect, effort = account.dialect, account.value("reasoning_effort")
    levels = next((levels for prefix, levels in dialect.efforts if is_one_of(model, (prefix,))), _DEFAULT_EFFORTS)
    known = ("none", *levels) if is_one_of(model, dialect.optional_models) else levels
    if effort in known or effort not in EFFORTS:
        return
    requested = EFFORTS.index(effort)
    closest = min(known, key=lambda level: (abs(EFFORTS.index(level) - requested), -EFFORTS.index(level)))
    account.set("reasoning_effort", closest)
    account.warnings.append(f"reasoning_effort: {effort} became {closest}, {model} takes {', '.join(known)}")


def _rename_limit(account: Account, request: ChatRequest) -> None:
    if not account.dialect.max_completion_tokens and "max_completion_tokens" in account.raw:
        account.raw["max_tokens"] = account.raw.pop("max_completion_tokens")


def _check_kind(account: Account) -> None:
    dialect = account.dialect
    if not dialect.choices and isinstance(count := account.value("n"), int) and count > 1:
        raise account.refuse("n", f"{dialect.provider} gives one answer a request")
    if not dialect.json_schema:
        answer_format = account.value("response_format")
        if isinstance(answer_format, Mapping) and answer_format.get("type") == "json_schema":
            raise account.refuse("response_format", f"{dialect.provider} takes no JSON schema")


def _fit_tool_choice(account: Account, request: ChatRequest) -> None:
    choice = account.value("tool_choice")
    if choice == "none":
        for name in ("tool_choice", "tools", "parallel_tool_calls"):
            account.raw.pop(name, None)
    elif choice != "auto":
        account.ignore("tool_choice", is_foreign=request.is_foreign)
