"""The parts of responses and of their events that are read; the rest of each object is skipped while decoding
(https://platform.openai.com/docs/api-reference/responses/object, …/responses-streaming)."""

from __future__ import annotations

from typing import Any

import msgspec

from integrations.providers.common.failures import failure_in_body
from integrations.providers.common.surrogates import lenient
from integrations.providers.common.usage import read_usage
from integrations.providers.errors import FailureKind, ProviderError
from integrations.providers.usage import Usage

# These codes of errors say more than the status 200 that they come with
# (https://platform.openai.com/docs/api-reference/responses/object#responses-object-error).
_STATUSES = {
    "server_error": 500,
    "rate_limit_exceeded": 429,
    "invalid_prompt": 400,
    "vector_store_timeout": 504,
    "image_content_policy_violation": 400,
}
_INCOMPLETE = {"max_output_tokens": "length", "content_filter": "content_filter"}
_CALLS = frozenset({"function_call", "custom_tool_call"})


class Item(msgspec.Struct):
    type: str = ""
    status: Any = None
    action: Any = None


class Incomplete(msgspec.Struct):
    reason: Any = None


class Response(msgspec.Struct):
    model: Any = None
    status: Any = None
    error: Any = None
    incomplete_details: Incomplete | None = None
    output: list[Item] | None = None
    usage: dict[str, Any] | None = None
    service_tier: Any = None
    tool_usage: Any = None


class Event(msgspec.Struct):
    """An event of any type. `code` and `message` are those of an `error`."""

    type: str = ""
    delta: Any = None
    item: Item | None = None
    response: Response | None = None
    error: Any = None
    code: Any = None
    message: Any = None


_CHAT_NAMES = {
    "input_tokens": "prompt_tokens",
    "input_tokens_details": "prompt_tokens_details",
    "output_tokens": "completion_tokens",
    "output_tokens_details": "completion_tokens_details",
}
decode_response = lenient(msgspec.json.Decoder(Response).decode)
decode_event = lenient(msgspec.json.Decoder(Event).decode)


def chat_usage(counts: dict[str, Any]) -> dict[str, Any]:
    """Returns the token counts under the names that they have in a chat completion."""
    return {_CHAT_NAMES.get(name, name): value for name, value in counts.items()}


def usage_of(response: Response) -> Usage | None:
    """Returns the tokens and the charged searches; None for a response without counts."""
    if not response.usage:
        return None
    usage = read_usage(chat_usage(response.usage), response.service_tier)
    searches = _searches(response)
    return msgspec.structs.replace(usage, searches=searches) if searches else usage


def _searches(response: Response) -> int:
    """Returns the number of web searches, each of which is charged, while the opening of a page is not
    (https://platform.openai.com/docs/pricing#built-in-tools)."""
    used = response.tool_usage.get("web_search") if isinstance(response.tool_usage, dict) else None
    number = used.get("num_requests") if isinstance(used, dict) else None
    if isinstance(number, int) and not isinstance(number, bool):
        return max(0, number)
    calls = [item for item in response.output or () if item.type == "web_search_call"]
    return sum(1 for call in calls if not isinstance(call.action, dict) or call.action.get("type") == "search")


def finish_reason(response: Response, *, called_tools: bool) -> str:
    if response.incomplete_details is not None and response.status == "incomplete":
        return _INCOMPLETE.get(str(response.incomplete_details.reason), "stop")
    return "tool_calls" if called_tools else "stop"


def calls_tools(items: list[Item] | None) -> bool:
    """Returns whether the client has to run a tool."""
    return any(item.type in _CALLS for item in items or ())


def failure_in(response: Response, *, provider: str) -> ProviderError | None:
    """Returns the failure of a response that did not come to an answer, None for an answer."""
    if response.status == "cancelled":
        return ProviderError(
            f"{provider} cancelled the response", kind=FailureKind.UNAVAILABLE, provider=provider, status=200
        )
    if response.status != "failed" and not response.error:
        return None
    return reported_failure(response.error, provider=provider)


def reported_failure(error: Any, *, provider: str) -> ProviderError:
    """Returns the failure that an error object stands for; its code replaces the status, which is 200."""
    code = error.get("code") or error.get("type") if isinstance(error, dict) else None
    return failure_in_body({"error": error}, provider=provider, status=_STATUSES.get(str(code)))
