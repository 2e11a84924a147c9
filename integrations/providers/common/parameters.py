"""The request's parameters in the forms that other dialects need, and the account of those that have no counterpart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from integrations.providers.errors import UnsupportedParameterError

# What the gateway acts on itself, and what says how the answer travels and not what it is.
_NOT_FOR_PROVIDERS = frozenset(
    {"model", "messages", "stream", "stream_options", "models", "provider", "prompt_config", "prompt_variables"}
)
# Values that ask for nothing: a client that sends them loses nothing where the parameter is left out.
_ASKS_NOTHING: Mapping[str, Any] = {
    "frequency_penalty": 0,
    "logit_bias": {},
    "logprobs": False,
    "metadata": {},
    "modalities": ["text"],
    "n": 1,
    "parallel_tool_calls": True,
    "presence_penalty": 0,
    "response_format": {"type": "text"},
    "service_tier": "auto",
    "stop": [],
    "store": False,
    "temperature": 1,
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1,
}

# The levels of today's SDKs: https://platform.openai.com/docs/api-reference/chat/create#chat-create-reasoning_effort
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
# https://platform.claude.com/docs/en/api/messages/create#create.thinking. `between_tools` is off as well: it says in
# which form the short notes come that some models write between calls all the same.
THINKING_OFF = ("disabled", "between_tools")
THINKING_TYPES = ("enabled", "adaptive", *THINKING_OFF)


@dataclass(frozen=True, slots=True)
class FunctionTool:
    """`extra` holds fields beside `function`, such as `cache_control`."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    strict: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """`function` names the one function for kind "function"; `allowed` restricts the choice (OpenAI: allowed_tools)."""

    kind: Literal["none", "auto", "required", "function"]
    function: str = ""
    allowed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ResponseFormat:
    kind: Literal["text", "json_object", "json_schema"]
    name: str = ""
    schema: Mapping[str, Any] = field(default_factory=dict)
    strict: bool = False
    description: str = ""

    @property
    def described_schema(self) -> Mapping[str, Any]:
        """The schema with what the format is for, where a provider has no other place for it."""
        return {"description": self.description, **self.schema} if self.description else self.schema


@dataclass(frozen=True, slots=True)
class ReasoningRequest:
    """The request's `thinking` and `reasoning_effort` in one form. `enabled` is None where the request has neither."""

    enabled: bool | None = None
    budget_tokens: int | None = None
    effort: str = ""
    adaptive: bool = False


@dataclass(slots=True)
class Mapped:
    """Keeps account of which parameters an adapter has translated; the rest has no counterpart and is named."""

    provider: str
    fields: Mapping[str, Any]
    taken: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)

    def take(self, name: str) -> Any:
        """The value of a parameter that the adapter translates; None when it is absent or null."""
        self.taken.add(name)
        return self.fields.get(name)

    def drop(self, what: str, why: str = "") -> None:
        """Notes something that is left out though its parameter was looked at."""
        self.notes.append(f"{what}: dropped, {why or f'{self.provider} has no counterpart'}")

    def refuse(self, parameter: str, problem: str) -> UnsupportedParameterError:
        return UnsupportedParameterError(parameter, problem, provider=self.provider)

    def warnings(self) -> tuple[str, ...]:
        """Call last: what was dropped, with every field that nobody took."""
        for name, value in self.fields.items():
            if name in self.taken or name in _NOT_FOR_PROVIDERS or value is None:
                continue
            if name not in _ASKS_NOTHING or value != _ASKS_NOTHING[name]:
                self.drop(name)
        return tuple(self.notes)


def max_tokens(mapped: Mapped) -> int | None:
    newer, older = mapped.take("max_completion_tokens"), mapped.take("max_tokens")
    limit = newer if newer is not None else older
    return None if limit is None else int(limit)


def stop_sequences(mapped: Mapped) -> list[str]:
    """Returns the stop sequences without empty ones, which stop nothing and which most providers refuse."""
    stop = mapped.take("stop")
    return [sequence for sequence in ([stop] if isinstance(stop, str) else stop or ()) if sequence != ""]


def function_tools(mapped: Mapped) -> tuple[list[FunctionTool], list[Mapping[str, Any]]]:
    """The functions, and the tools that are none: a vendor's own, for the adapter to pass on or refuse."""
    functions, others = [], []
    for tool in mapped.take("tools") or ():
        function = tool.get("function")
        if tool.get("type", "function") != "function" or not isinstance(function, Mapping):
            others.append(tool)
            continue
        functions.append(
            FunctionTool(
                name=str(function.get("name") or ""),
                description=str(function.get("description") or ""),
                parameters=_schema_of(mapped, function),
                strict=function.get("strict") is True,
                extra=_beside_function(tool, function),
            )
        )
    return functions, others


def _beside_function(tool: Mapping[str, Any], function: Mapping[str, Any]) -> dict[str, Any]:
    extra = {name: value for name, value in tool.items() if name not in ("type", "function")}
    # Some clients put the cache marker inside.
    if function.get("cache_control") and "cache_control" not in extra:
        extra["cache_control"] = function["cache_control"]
    return extra


def _schema_of(mapped: Mapped, function: Mapping[str, Any]) -> Mapping[str, Any]:
    schema = function.get("parameters") or {"type": "object", "properties": {}}
    if not isinstance(schema, Mapping):
        raise mapped.refuse("tools", f"the parameters of {function.get('name')!r} are not a JSON schema")
    return schema


def tool_choice(mapped: Mapped) -> ToolChoice | None:
    """Returns the choice among the tools; None when the request leaves it to the provider's default."""
    choice = mapped.take("tool_choice")
    if choice is None:
        return None
    if choice in ("none", "auto", "required"):
        return ToolChoice(choice)
    if isinstance(choice, Mapping):
        kind = choice.get("type")
        named = choice.get("function")
        if kind == "function" and isinstance(named, Mapping) and named.get("name"):
            return ToolChoice("function", str(named["name"]))
        if kind == "allowed_tools" and isinstance(choice.get("allowed_tools"), Mapping):
            return _allowed(choice["allowed_tools"])
    raise mapped.refuse("tool_choice", "expected none, auto, required or a specific function")


def _allowed(wish: Mapping[str, Any]) -> ToolChoice:
    names = tuple(_tool_names(wish.get("tools") or ()))
    return ToolChoice("required" if wish.get("mode") == "required" else "auto", allowed=names)


def _tool_names(tools: Iterable[Any]) -> Iterable[str]:
    for tool in tools:
        function = tool.get("function") if isinstance(tool, Mapping) else None
        name = function.get("name") if isinstance(function, Mapping) else None
        if name:
            yield str(name)


def response_format(mapped: Mapped) -> ResponseFormat | None:
    """Returns the format that the answer has to have; None for plain text."""
    wish = mapped.take("response_format")
    if not isinstance(wish, Mapping) or wish.get("type") in (None, "text"):
        return None
    if wish["type"] == "json_object":
        return ResponseFormat("json_object")
    schema = wish.get("json_schema")
    if not isinstance(schema, Mapping) or not isinstance(schema.get("schema"), Mapping):
        raise mapped.refuse("response_format", "json_schema needs an object with a schema")
    return ResponseFormat(
        "json_schema",
        name=str(schema.get("name") or "response"),
        schema=schema["schema"],
        strict=schema.get("strict") is True,
        description=str(schema.get("description") or ""),
    )


def reasoning_request(mapped: Mapped, *, own_thinking: bool = False) -> ReasoningRequest:
    """`own_thinking`: `thinking` is the provider's own field, so that a `type` of tomorrow is its to judge.

    Raises UnsupportedParameterError for a level, or a type, that is not known and would have to be translated.
    """
    thinking, effort = mapped.take("thinking"), mapped.take("reasoning_effort")
    check_reasoning_words(None if own_thinking else thinking, effort, provider=mapped.provider)
    if isinstance(thinking, Mapping):
        kind, budget = thinking.get("type"), thinking.get("budget_tokens")
        return ReasoningRequest(
            enabled=kind not in THINKING_OFF,
            budget_tokens=budget if isinstance(budget, int) else None,
            effort=str(effort or ""),
            adaptive=kind == "adaptive",
        )
    if effort is None:
        return ReasoningRequest()
    return ReasoningRequest(enabled=effort != "none", effort=str(effort))


def check_reasoning_words(thinking: Any, effort: Any, *, provider: str) -> None:
    """Checks the two fields for dialects that translate them into other words. Raises UnsupportedParameterError, which
    names the field."""
    if effort is not None and effort not in EFFORTS:
        problem = f"{effort!r} is not a level that can be translated for {provider}: expected {', '.join(EFFORTS)}"
        raise UnsupportedParameterError("reasoning_effort", problem, provider=provider)
    kind = thinking.get("type") if isinstance(thinking, Mapping) else None
    if kind is not None and kind not in THINKING_TYPES:
        known = ", ".join(THINKING_TYPES)
        problem = f"type {kind!r} cannot be translated for {provider}: expected {known}"
        raise UnsupportedParameterError("thinking", problem, provider=provider)


# Budgets that the levels stand for where a provider takes a count (OpenRouter's shares of a 32k allowance).
EFFORT_BUDGETS = {"minimal": 1024, "low": 4096, "medium": 8192, "high": 16384, "xhigh": 32768, "max": 65536}


def budget_of(wish: ReasoningRequest) -> int | None:
    """Tokens to think with, None when the request names neither a count nor a level."""
    if wish.budget_tokens is not None:
        return wish.budget_tokens
    return EFFORT_BUDGETS.get(wish.effort)


def effort_of(wish: ReasoningRequest) -> str:
    """A level for providers that take no count; empty when reasoning was not asked for. Borders lie between the usual
    budgets of 1k, 8k and 24k tokens."""
    if wish.effort or not wish.enabled:
        return "" if wish.effort == "none" else wish.effort
    if wish.budget_tokens is None:
        return "medium"
    if wish.budget_tokens <= 4096:
        return "low"
    return "medium" if wish.budget_tokens <= 16384 else "high"
