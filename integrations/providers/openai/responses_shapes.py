"""The parts of responses and their events that are read; decoding skips the rest
(https://platform.openai.com/docs/api-reference/responses/object, …/responses-streaming)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from integrations.providers.base import ParsedResponse
from integrations.providers.common.charges import served_tier
from integrations.providers.common.failures import failure_in_body
from integrations.providers.common.odd_usage import despite_usage
from integrations.providers.common.surrogates import lenient
from integrations.providers.common.usage import read_usage
from integrations.providers.errors import FailureKind, ProviderError
from integrations.providers.given import NOTHING_GIVEN, Given, Kept, given
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
_TEXTS = frozenset({"message", "reasoning"})
_CALLS = frozenset({"function_call", "custom_tool_call"})
ENDS = frozenset({"response.completed", "response.incomplete"})
"""The events behind which no other comes, and which hold an answer."""


Count = Annotated[int, msgspec.Meta(ge=0)]


class Item(msgspec.Struct):
    type: str = ""
    id: Any = None
    status: Any = None
    action: Any = None
    container_id: Any = None
    environment: Any = None


class Incomplete(msgspec.Struct):
    reason: Any = None


class _InputDetails(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    cached_tokens: Count = 0


class _OutputDetails(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    reasoning_tokens: Count = 0


class _Counts(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    input_tokens: Count
    output_tokens: Count
    total_tokens: Count
    input_tokens_details: _InputDetails = _InputDetails()
    output_tokens_details: _OutputDetails = _OutputDetails()


class Response(msgspec.Struct):
    id: Any = None
    store: Any = None
    model: Any = None
    status: Any = None
    error: Any = None
    incomplete_details: Incomplete | None = None
    output: list[Item] | None = None
    usage: dict[str, Any] | None = None
    service_tier: Any = None
    tool_usage: Any = None


class _Usual(msgspec.Struct):
    model: str
    status: Literal["completed"]
    output: list[Item]
    usage: _Counts
    id: str = ""
    store: Any = None
    error: None = None
    service_tier: Any = None
    tool_usage: None = None


class Event(msgspec.Struct):
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
decode_response = despite_usage(lenient(msgspec.json.Decoder(Response).decode))
_decode_usual = msgspec.json.Decoder(_Usual).decode
decode_event = despite_usage(lenient(msgspec.json.Decoder(Event).decode))


def chat_usage(counts: dict[str, Any]) -> dict[str, Any]:
    return {_CHAT_NAMES.get(name, name): value for name, value in counts.items()}


def usage_of(response: Response) -> Usage | None:
    if not response.usage:
        return None
    usage = _documented(response.usage, response.service_tier)
    if usage is None:
        usage = read_usage(response.usage, response.service_tier)
    if usage is None:
        return None
    searches = _searches(response)
    return msgspec.structs.replace(usage, searches=searches) if searches else usage


def conforming(body: bytes) -> ParsedResponse | None:
    try:
        response = _decode_usual(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    given_out = [(Kept.RESPONSE, response.id)] if response.id and response.store is not False else []
    for item in response.output:
        if item.type not in _TEXTS:
            return None
        if given_out and item.id:
            given_out.append((Kept.ITEM, item.id))
    usage = _usage_in(response.usage, response.service_tier)
    return None if usage is None else ParsedResponse(body, response.model, "stop", usage, given=tuple(given_out))


def given_in(response: Response, *, may_compare: bool = False) -> tuple[Given, ...]:
    """What the response gives out. If it is not stored, later requests can name its containers, and itself if they
    `may_compare` their use of the cache."""
    is_stored = response.store is not False
    found = given(Kept.RESPONSE, response.id) if is_stored or may_compare else NOTHING_GIVEN
    for item in response.output or ():
        found += given_in_item(item, is_stored=is_stored)
    return found


def given_in_item(item: Item, *, is_stored: bool) -> tuple[Given, ...]:
    found = given(Kept.ITEM, item.id) if is_stored else NOTHING_GIVEN
    if item.container_id is not None:
        found += given(Kept.CONTAINER, item.container_id)
    if isinstance(item.environment, dict):
        found += given(Kept.CONTAINER, item.environment.get("container_id"))
    return found


def _documented(counts: dict[str, Any], service_tier: object) -> Usage | None:
    try:
        read = msgspec.convert(counts, _Counts)
    except msgspec.ValidationError:
        return None
    return _usage_in(read, service_tier)


def _usage_in(read: _Counts, service_tier: object) -> Usage | None:
    """None if documented counts say more than their names do."""
    prompt, completion, reasoning = read.input_tokens, read.output_tokens, read.output_tokens_details.reasoning_tokens
    if not prompt or not completion or (reasoning and read.total_tokens == prompt + completion + reasoning):
        # The total says more, or this vendor counts reasoning apart from the output.
        return None
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        cache_read_tokens=min(read.input_tokens_details.cached_tokens, prompt),
        reasoning_tokens=min(reasoning, completion),
        service_tier=served_tier(service_tier),
    )


def _searches(response: Response) -> int:
    """Each search is charged; opening a page is not (https://platform.openai.com/docs/pricing#built-in-tools)."""
    used = response.tool_usage.get("web_search") if isinstance(response.tool_usage, dict) else None
    number = used.get("num_requests") if isinstance(used, dict) else None
    if isinstance(number, int) and not isinstance(number, bool):
        return max(0, number)
    found = 0
    for item in response.output or ():
        if item.type == "web_search_call":
            found += not isinstance(item.action, dict) or item.action.get("type") == "search"
    return found


def finish_reason(response: Response, *, called_tools: bool) -> str:
    if response.incomplete_details is not None and response.status == "incomplete":
        return _INCOMPLETE.get(str(response.incomplete_details.reason), "stop")
    return "tool_calls" if called_tools else "stop"


def calls_tools(items: list[Item] | None) -> bool:
    # A generator costs more than the whole loop does for most answers.
    for item in items or ():  # noqa: SIM110
        if item.type in _CALLS:
            return True
    return False


def failure_in(response: Response, *, provider: str) -> ProviderError | None:
    if response.status == "cancelled":
        return ProviderError(
            f"{provider} cancelled the response", kind=FailureKind.UNAVAILABLE, provider=provider, status=200
        )
    if response.status != "failed" and not response.error:
        return None
    return reported_failure(response.error, provider=provider)


def reported_failure(error: Any, *, provider: str) -> ProviderError:
    """The error's code replaces the status, which is 200."""
    code = error.get("code") or error.get("type") if isinstance(error, dict) else None
    return failure_in_body({"error": error}, provider=provider, status=_STATUSES.get(str(code)))
