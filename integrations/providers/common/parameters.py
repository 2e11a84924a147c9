from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from integrations.providers.errors import UnsupportedParameterError

# The gateway acts on some fields itself, and others concern the transport of the answer and not its content; neither
# need a warning.
_NOT_FOR_PROVIDERS = frozenset(
    {"model", "messages", "stream", "stream_options", "models", "provider", "prompt_config", "prompt_variables"}
)
OF_GEMINI = frozenset({"labels", "safetySettings", "thinkingConfig"})
"""Fields of a Gemini request that concern its own vendor alone, or stand beside what they mean in a chat completion. A
translated request loses them in silence; a client of chat completions that sent them is told."""
# A parameter with its value in this mapping has no effect, so that it may be left out without a warning.
_WITHOUT_EFFECT: Mapping[str, Any] = {
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

# The levels are those of current SDKs:
# https://platform.openai.com/docs/api-reference/chat/create#chat-create-reasoning_effort
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
# The types of https://platform.claude.com/docs/en/api/messages/create#create.thinking that turn thinking off.
# `between_tools` is one of them: it sets the form of the short notes that some models write between calls in any case.
THINKING_OFF = ("disabled", "between_tools")
THINKING_TYPES = ("enabled", "adaptive", *THINKING_OFF)


@dataclass(frozen=True, slots=True)
class FunctionTool:
    name: str
    description: str
    parameters: Mapping[str, Any]
    strict: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """`function` is the name for kind "function"; `allowed` restricts the choice (OpenAI: allowed_tools)."""

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
        """The schema with the format's description in it, for providers without another place for that."""
        return {"description": self.description, **self.schema} if self.description else self.schema


@dataclass(frozen=True, slots=True)
class ReasoningRequest:
    """`thinking` and `reasoning_effort` in one form. `enabled` is None if the request has neither."""

    enabled: bool | None = None
    budget_tokens: int | None = None
    effort: str = ""
    adaptive: bool = False


@dataclass(slots=True)
class Mapped:
    provider: str
    fields: Mapping[str, Any]
    is_translated: bool = False
    taken: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)

    def take(self, name: str) -> Any:
        self.taken.add(name)
        return self.fields.get(name)

    def drop(self, name: str, reason: str = "") -> None:
        self.notes.append(f"{name}: dropped, {reason or f'{self.provider} has no counterpart'}")

    def drop_names(self) -> None:
        """Adds a warning for the names of speakers. In results of tools and functions, `name` is the tool's name."""
        messages = self.fields["messages"]
        if any(message.get("name") and message["role"] not in ("tool", "function") for message in messages):
            self.drop("messages.name")

    def refuse(self, parameter: str, problem: str) -> UnsupportedParameterError:
        return UnsupportedParameterError(parameter, problem, provider=self.provider)

    def warnings(self) -> tuple[str, ...]:
        """Call this last: every field that was not taken becomes a warning."""
        for name, value in self.fields.items():
            if name in self.taken or name in _NOT_FOR_PROVIDERS or value is None:
                continue
            if self.is_translated and name in OF_GEMINI:
                continue
            if name not in _WITHOUT_EFFECT or value != _WITHOUT_EFFECT[name]:
                self.drop(name)
        return tuple(self.notes)


def max_tokens(mapped: Mapped) -> int | None:
    newer, older = mapped.take("max_completion_tokens"), mapped.take("max_tokens")
    limit = newer if newer is not None else older
    return None if limit is None else int(limit)


def stop_sequences(mapped: Mapped) -> list[str]:
    """Leaves out empty sequences, which have no effect and which most providers refuse."""
    stop = mapped.take("stop")
    return [sequence for sequence in ([stop] if isinstance(stop, str) else stop or ()) if sequence != ""]


def has_filter(search: Any) -> bool:
    return isinstance(search, Mapping) and isinstance(search.get("filters"), Mapping) and bool(search["filters"])


def function_tools(mapped: Mapped) -> tuple[list[FunctionTool], list[Mapping[str, Any]]]:
    """The functions, and the vendors' own tools for the adapter to pass on or refuse."""
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
    # Some clients put the cache marker into the function.
    if function.get("cache_control") and "cache_control" not in extra:
        extra["cache_control"] = function["cache_control"]
    return extra


def _schema_of(mapped: Mapped, function: Mapping[str, Any]) -> Mapping[str, Any]:
    schema = function.get("parameters") or {"type": "object", "properties": {}}
    if not isinstance(schema, Mapping):
        raise mapped.refuse("tools", f"the parameters of {function.get('name')!r} are not a JSON schema")
    return schema


def tool_choice(mapped: Mapped) -> ToolChoice | None:
    """None leaves the choice to the provider's default."""
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


def _allowed(allowed: Mapping[str, Any]) -> ToolChoice:
    names = tuple(_tool_names(allowed.get("tools") or ()))
    return ToolChoice("required" if allowed.get("mode") == "required" else "auto", allowed=names)


def _tool_names(tools: Iterable[Any]) -> Iterable[str]:
    for tool in tools:
        function = tool.get("function") if isinstance(tool, Mapping) else None
        name = function.get("name") if isinstance(function, Mapping) else None
        if name:
            yield str(name)


def response_format(mapped: Mapped) -> ResponseFormat | None:
    answer_format = mapped.take("response_format")
    if not isinstance(answer_format, Mapping) or answer_format.get("type") in (None, "text"):
        return None
    if answer_format["type"] == "json_object":
        return ResponseFormat("json_object")
    schema = answer_format.get("json_schema")
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
    """`own_thinking`: `thinking` is the provider's own field, which judges an unknown `type` itself. Raises
    UnsupportedParameterError for an unknown level or type that must be translated."""
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
    """Raises UnsupportedParameterError, which names the field, for values that a dialect cannot translate."""
    if effort is not None and effort not in EFFORTS:
        problem = f"{effort!r} is not a level that can be translated for {provider}: expected {', '.join(EFFORTS)}"
        raise UnsupportedParameterError("reasoning_effort", problem, provider=provider)
    kind = thinking.get("type") if isinstance(thinking, Mapping) else None
    if kind is not None and kind not in THINKING_TYPES:
        known = ", ".join(THINKING_TYPES)
        problem = f"type {kind!r} cannot be translated for {provider}: expected {known}"
        raise UnsupportedParameterError("thinking", problem, provider=provider)


# The levels of effort stand for budgets where a provider takes a number of tokens (OpenRouter's shares of 32k tokens).
EFFORT_BUDGETS = {"minimal": 1024, "low": 4096, "medium": 8192, "high": 16384, "xhigh": 32768, "max": 65536}


def budget_of(reasoning: ReasoningRequest) -> int | None:
    """The tokens for thinking; None if the request names neither a number nor a level."""
    if reasoning.budget_tokens is not None:
        return reasoning.budget_tokens
    return EFFORT_BUDGETS.get(reasoning.effort)


def effort_of(reasoning: ReasoningRequest) -> str:
    """The level for providers without budgets; empty if reasoning was not asked for. The thresholds lie between the
    usual budgets of 1k, 8k and 24k tokens."""
    if reasoning.effort or not reasoning.enabled:
        return "" if reasoning.effort == "none" else reasoning.effort
    if reasoning.budget_tokens is None:
        return "medium"
    if reasoning.budget_tokens <= 4096:
        return "low"
    return "medium" if reasoning.budget_tokens <= 16384 else "high"
