"""https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.surfaces.checks import Json
from integrations.providers.common.usage import read_usage
from integrations.providers.usage import Usage

_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
}
# Chat completions have no finish reason for these; the adapter gives the vendor's own reason beside `stop` or `length`.
_OWN_REASONS = frozenset({"compaction", "model_context_window_exceeded", "pause_turn"})
# These fields of Anthropic's answers have the same names in `provider_specific_fields`.
OF_THE_END = ("context_management", "diagnostics", "input_transformations")
# These fields of Anthropic's usage have no counterpart in a chat completion, and pass where its usage has them.
_EXTRAS = ("cache_creation", "inference_geo", "iterations", "server_tool_use", "speed", "estimated")


def stop_fields(finish_reason: str | None, specific: Mapping[str, Any], refusal: str) -> Json:
    sequence = specific.get("stop_sequence")
    return {
        "stop_reason": _stop_reason(finish_reason, specific, has_refused=bool(refusal)),
        "stop_sequence": sequence if isinstance(sequence, str) else None,
        "stop_details": _details(specific, refusal),
    }


def _stop_reason(finish_reason: str | None, specific: Mapping[str, Any], *, has_refused: bool) -> str:
    own = specific.get("stop_reason")
    if isinstance(own, str) and own in _OWN_REASONS:
        return own
    if finish_reason == "stop" and isinstance(specific.get("stop_sequence"), str):
        return "stop_sequence"
    if finish_reason == "stop" and has_refused:
        return "refusal"
    return _REASONS.get(finish_reason or "", "end_turn")


def _details(specific: Mapping[str, Any], refusal: str) -> Json | None:
    details = specific.get("stop_details")
    if isinstance(details, dict):
        return details
    return {"type": "refusal", "category": None, "explanation": refusal} if refusal else None


def usage_of(usage: Mapping[str, Any] | None) -> Json:
    """`input_tokens` leaves out tokens read from or written to a cache."""
    counts = read_usage(usage or {}) or Usage()
    made: Json = {
        "input_tokens": counts.prompt_tokens - counts.cache_read_tokens - counts.cache_write_tokens,
        "cache_creation_input_tokens": counts.cache_write_tokens,
        "cache_read_input_tokens": counts.cache_read_tokens,
        "output_tokens": counts.completion_tokens,
    }
    if counts.reasoning_tokens:
        made["output_tokens_details"] = {"thinking_tokens": counts.reasoning_tokens}
    if usage is not None:
        for name in _EXTRAS:
            if usage.get(name) is not None:
                made[name] = usage[name]
    return made


def message_id(completion_id: str | None, request_id: str) -> str:
    given = completion_id or ""
    if given.startswith("msg_"):
        return given
    letters = given.removeprefix("chatcmpl-") or request_id
    return f"msg_{letters}" if letters.isalnum() else f"msg_{''.join(filter(str.isalnum, letters))}"
