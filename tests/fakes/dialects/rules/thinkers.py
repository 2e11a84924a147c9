"""What vendors refuse whose models think in loops of tools: DeepSeek, Moonshot, Xiaomi."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.fakes.dialects.rules.table import Found, Json, Request, Rule, Table, only_mappings

_MOONSHOT = "https://platform.moonshot.ai/docs/guide/use-kimi-k2-thinking-model"
_DEEPSEEK = "https://api-docs.deepseek.com/guides/thinking_mode"
_MIMO = "https://platform.xiaomimimo.com/#/docs"
# These think unless they are told not to.
_THINKERS = ("deepseek-v4", "deepseek-reasoner", "kimi-k2.", "kimi-k2-thinking", "kimi-k3", "mimo-")
_ALWAYS = ("kimi-k2-thinking", "kimi-k3")


def error(status: int, message: str, param: str | None, code: str | None) -> Json:
    del status
    return {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}


def _thinks(request: Request) -> bool:
    model, thinking = request.model.rpartition("/")[2], request.body.get("thinking")
    kind = thinking.get("type") if isinstance(thinking, Mapping) else None
    return model.startswith(_ALWAYS) or (kind != "disabled" and (kind == "enabled" or model.startswith(_THINKERS)))


def _call_without_reasoning(request: Request) -> Found:
    if not _thinks(request):
        return None
    for index, message in only_mappings(request.body.get("messages")):
        if message.get("tool_calls") and not message.get("reasoning_content"):
            return {"index": index}
    return None


def _both(request: Request) -> Found:
    return {} if {"thinking", "reasoning_effort"} <= request.body.keys() else None


def _no_thinking_of(request: Request) -> Found:
    thinking: Any = request.body.get("thinking")
    kind = thinking.get("type") if isinstance(thinking, Mapping) else None
    return {} if kind == "disabled" and request.model.startswith(_ALWAYS) else None


def _loop(source: str, words: str) -> Rule:
    return Rule("call without its reasoning", source, words, _call_without_reasoning)


DEEPSEEK = Table(
    error, (_loop(_DEEPSEEK, "The `reasoning_content` in the thinking mode must be passed back to the API."),)
)
MIMO = Table(error, (_loop(_MIMO, "The reasoning_content in the thinking mode must be passed back to the API."),))
MOONSHOT = Table(
    error,
    (
        Rule("both fields of thinking", _MOONSHOT, "cannot specify both 'thinking' and 'reasoning_effort'", _both),
        Rule("thinking switched off", _MOONSHOT, "thinking cannot be disabled for this model", _no_thinking_of),
        _loop(
            _MOONSHOT,
            "thinking is enabled but reasoning_content is missing in assistant tool call message at index {index}",
        ),
    ),
)
WANTING_REASONING = frozenset({"deepseek", "moonshot", "xiaomi_mimo"})
"""The providers that these tables are for."""
