"""What vLLM's chat completions refuse. Fields that it does not know are ignored there."""

from __future__ import annotations

from collections.abc import Mapping

from tests.fakes.dialects.rules.table import Found, Json, Request, Rule, Table, only_mappings

_SOURCE = "https://github.com/vllm-project/vllm/blob/main/vllm/entrypoints/openai/chat_completion/protocol.py"
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_CHOICES = ("none", "auto", "required")


def error(status: int, message: str, param: str | None, code: str | None) -> Json:
    del code  # It is the status here.
    return {"error": {"message": message, "type": "BadRequestError", "param": param, "code": status}}


def _missing(request: Request) -> Found:
    if "messages" not in request.body:
        return {"place": "messages"}
    for index, message in only_mappings(request.body["messages"]):
        if "role" not in message:
            return {"place": f"messages.{index}.role"}
    return None


def _late_instructions(request: Request) -> Found:
    """Qwen's chat template raises this; many other open models do not mind."""
    if not str(request.body.get("model")).lower().startswith("qwen"):
        return None
    messages = only_mappings(request.body.get("messages"))
    return next(({} for index, message in messages if index and message.get("role") == "system"), None)


def _effort(request: Request) -> Found:
    return {} if request.body.get("reasoning_effort") not in (None, *_EFFORTS) else None


def _kind_of_tool(request: Request) -> Found:
    for index, tool in only_mappings(request.body.get("tools")):
        if tool.get("type", "function") != "function":
            return {"index": index}
    return None


def _stream_options(request: Request) -> Found:
    return {} if request.body.get("stream_options") and not request.body.get("stream") else None


def _top_logprobs_alone(request: Request) -> Found:
    return {} if request.body.get("top_logprobs") and not request.body.get("logprobs") else None


def _schema(request: Request) -> Found:
    wanted = request.body.get("response_format")
    if not isinstance(wanted, Mapping) or wanted.get("type") != "json_schema":
        return None
    return {} if wanted.get("json_schema") is None else None


def _no_tools(request: Request) -> Found:
    return {} if request.body.get("tools") == [] else None


def _choice_alone(request: Request) -> Found:
    is_chosen = request.body.get("tool_choice") not in (None, "none")
    return {} if is_chosen and request.body.get("tools") is None else None


def _unknown_choice(request: Request) -> Found:
    choice = request.body.get("tool_choice")
    return {"choice": choice} if isinstance(choice, str) and choice not in _CHOICES else None


def _choice_of_no_tool(request: Request) -> Found:
    choice = request.body.get("tool_choice")
    if not isinstance(choice, Mapping):
        return None
    named = (choice.get("function") or {}).get("name")
    tools = [tool.get("function") or {} for _, tool in only_mappings(request.body.get("tools"))]
    return {} if all(tool.get("name") != named for tool in tools) else None


def _two_ways_on(request: Request) -> Found:
    asks_for_both = request.body.get("continue_final_message") and request.body.get("add_generation_prompt", True)
    return {} if asks_for_both else None


CHAT = Table(
    error,
    (
        Rule("missing field", _SOURCE, "Field required: {place}", _missing),
        Rule(
            "unknown effort",
            _SOURCE,
            "Input should be 'none', 'minimal', 'low', 'medium', 'high', 'xhigh' or 'max'",
            _effort,
        ),
        Rule("tool that is no function", _SOURCE, "tools.{index}.type: Input should be 'function'", _kind_of_tool),
        Rule(
            "stream_options without stream",
            _SOURCE,
            "Stream options can only be defined when `stream=True`.",
            _stream_options,
            param="stream_options",
        ),
        Rule(
            "top_logprobs without logprobs",
            _SOURCE,
            "when using `top_logprobs`, `logprobs` must be set to true.",
            _top_logprobs_alone,
            param="top_logprobs",
        ),
        Rule(
            "schema that is missing",
            _SOURCE,
            "When response_format type is 'json_schema', the 'json_schema' field must be provided.",
            _schema,
            param="response_format",
        ),
        Rule(
            "empty tools",
            _SOURCE,
            "`tools` must not be an empty array. Either provide at least one tool or omit the field entirely.",
            _no_tools,
            param="tools",
        ),
        Rule(
            "tool_choice without tools",
            _SOURCE,
            "When using `tool_choice`, `tools` must be set.",
            _choice_alone,
            param="tool_choice",
        ),
        Rule(
            "unknown tool_choice",
            _SOURCE,
            "Invalid value for `tool_choice`: {choice}! Only named tools, 'none', 'auto' or 'required' are supported.",
            _unknown_choice,
            param="tool_choice",
        ),
        Rule(
            "tool_choice of no tool",
            _SOURCE,
            "The tool specified in `tool_choice` does not match any of the specified `tools`",
            _choice_of_no_tool,
            param="tool_choice",
        ),
        Rule(
            "system message behind the first",
            "https://github.com/vllm-project/vllm/issues/41114",
            "System message must be at the beginning.",
            _late_instructions,
        ),
        Rule(
            "continuation and a new turn",
            _SOURCE,
            "Cannot set both `continue_final_message` and `add_generation_prompt` to True.",
            _two_ways_on,
        ),
    ),
)
