"""Tests Cohere's finish reasons, broken answers and failures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import pytest
from cohere.types.chat_finish_reason import ChatFinishReason
from cohere.types.finish_reason import FinishReason

from integrations.providers.errors import FailureKind, ProviderError
from tests.integrations.cohere_answers import (
    READ,
    START,
    USAGE,
    choice_of,
    parsed,
    streamed_choice,
    text,
    text_delta,
)

# Every finish reason of the SDK, in both versions of the API, is mapped to the outcome of an answer with text.
REASONS: dict[str, str | FailureKind] = {
    "COMPLETE": "stop",
    "STOP_SEQUENCE": "stop",
    "MAX_TOKENS": "length",
    "ERROR_LIMIT": "length",
    "ERROR_TOXIC": "content_filter",
    "TOOL_CALL": FailureKind.UNUSABLE,  # The reason announces a call, and the answer has none.
    "ERROR": FailureKind.UNAVAILABLE,
    "USER_CANCEL": FailureKind.UNAVAILABLE,
    "TIMEOUT": FailureKind.TIMEOUT,
}
UNKNOWN: list[tuple[str, str | FailureKind]] = [
    ("FROM_THE_FUTURE", FailureKind.UNUSABLE),
    ("", FailureKind.UNUSABLE),
]


def test_reasons__of_the_sdk__each_has_its_outcome() -> None:
    known = {word for union in (ChatFinishReason, FinishReason) for word in get_args(get_args(union)[0])}
    assert known == set(REASONS)


@pytest.mark.parametrize(("reason", "outcome"), [*REASONS.items(), ("FROM_THE_FUTURE", "stop"), ("", "stop")])
def test_reason__coheres_behind_a_text__openais_or_a_failure(reason: str, outcome: str | FailureKind) -> None:
    assert outcome_of(reason, "a") == (outcome, outcome)


@pytest.mark.parametrize(("reason", "outcome"), [*REASONS.items(), *UNKNOWN])
def test_reason__coheres_of_an_empty_answer__openais_or_a_failure(reason: str, outcome: str | FailureKind) -> None:
    assert outcome_of(reason, "") == (outcome, outcome)


def outcome_of(reason: str, content: str) -> tuple[str | FailureKind, str | FailureKind]:
    """Returns the outcome, whole and streamed: the finish reason, or the kind of the failure, which is billed."""
    end = {"type": "message-end", "delta": {"finish_reason": reason, "usage": USAGE}}
    readers: list[Callable[[], dict[str, Any]]] = [
        lambda: choice_of(parsed(reason, content=[text(content)])),
        lambda: streamed_choice(START, text_delta(content), end),
    ]
    found: list[str | FailureKind] = []
    for read in readers:
        try:
            found.append(read()["finish_reason"])
        except ProviderError as error:
            assert error.usage == READ
            found.append(error.kind)
    whole, stream = found
    return whole, stream
