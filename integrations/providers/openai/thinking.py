from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from integrations.providers.base import ChatRequest
from integrations.providers.common.parameters import (
    EFFORTS,
    THINKING_OFF,
    ReasoningRequest,
    check_reasoning_words,
    effort_of,
)
from integrations.providers.openai.account import Account
from integrations.providers.openai.dialect import is_one_of

# The first two fields of `thinking` go along, and the last concerns signatures, which only their vendor has.
_IN_SILENCE = frozenset({"type", "budget_tokens", "block_binding"})
# Vendors that want the reasoning of a call refuse an empty text.
_PLACEHOLDER = " "


def is_enabled(thinking: Mapping[str, Any]) -> bool:
    return thinking.get("type") not in THINKING_OFF


def effort_in(thinking: Mapping[str, Any]) -> str:
    budget = thinking.get("budget_tokens")
    return effort_of(ReasoningRequest(is_enabled(thinking), budget if isinstance(budget, int) else None))


def thinking_in_common_words(account: Account, thinking: Mapping[str, Any]) -> None:
    """Look-alikes know only the types `enabled` and `disabled`, without settings of how thoughts are shown."""
    check_reasoning_words(thinking, None, provider=account.dialect.provider)
    budget = thinking.get("budget_tokens") if is_enabled(thinking) else None
    common = {"type": "enabled" if is_enabled(thinking) else "disabled"}
    account.set("thinking", common if budget is None else {**common, "budget_tokens": budget})
    for name in thinking:
        if name not in _IN_SILENCE:
            account.warnings.append(f"thinking.{name}: dropped, {account.dialect.provider} has no counterpart")


def fit_either(account: Account, request: ChatRequest) -> None:
    """Keeps the one of `thinking` and `reasoning_effort` that the model knows. A direct request keeps both: its client
    knows the vendor."""
    thinking, effort = account.value("thinking"), account.value("reasoning_effort")
    if not request.is_foreign and (thinking is not None or effort not in EFFORTS):
        return
    model, dialect = request.family, account.dialect
    if is_one_of(model, dialect.effort_models):
        if isinstance(thinking, Mapping):
            _thinking_to_effort(account, thinking, effort)
        return
    if isinstance(thinking, Mapping):
        thinking_in_common_words(account, thinking)
    elif effort is not None and is_one_of(model, dialect.toggle_models):
        account.set("thinking", {"type": "disabled" if effort == "none" else "enabled"})
    elif not request.is_foreign:
        return
    if effort == "none":
        del account.raw["reasoning_effort"]
    else:
        account.drop("reasoning_effort", f"{model} has no degrees of thinking")


def _thinking_to_effort(account: Account, thinking: Mapping[str, Any], effort: Any) -> None:
    check_reasoning_words(thinking, None, provider=account.dialect.provider)
    del account.raw["thinking"]
    if not is_enabled(thinking):
        account.set("reasoning_effort", "low")
        account.warnings.append("thinking: became reasoning_effort low, the model always reasons")
    elif effort is None and thinking.get("budget_tokens") is not None:
        account.set("reasoning_effort", effort_in(thinking))


def fit_loop(account: Account, model: str) -> None:
    """Turns thinking off if the history has calls without their reasoning: another model made them, and the vendor
    refuses such a history of a thinking model. A model that always thinks gets a blank text instead."""
    messages = account.value("messages")
    if not isinstance(messages, list) or not any(map(_lacks_reasoning, messages)):
        return
    if is_one_of(model, account.dialect.always_thinking):
        filled = [{**one, "reasoning_content": _PLACEHOLDER} if _lacks_reasoning(one) else one for one in messages]
        account.set("messages", filled)
        return
    thinking = account.value("thinking")
    if not isinstance(thinking, Mapping) or is_enabled(thinking):
        account.warnings.append(
            f"thinking: disabled, {account.dialect.provider} wants the reasoning of earlier tool calls, "
            "and another model made them"
        )
    account.set("thinking", {"type": "disabled"})
    account.raw.pop("reasoning_effort", None)


def _lacks_reasoning(message: Any) -> bool:
    if not isinstance(message, Mapping) or not message.get("tool_calls"):
        return False
    text = message.get("reasoning_content")
    return not isinstance(text, str) or not text
