"""Tests whole answers of Converse that no recording holds."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from botocore.session import Session

from integrations.providers.bedrock import ADAPTER
from integrations.providers.errors import FailureKind, ProviderError
from tests.integrations.bedrock_answers import (
    COUNTS,
    METADATA,
    START,
    STOP,
    USAGE,
    choice_of,
    delta,
    deltas,
    ended,
    run,
)
from tests.integrations.bedrock_exchanges import CLAUDE, KEYS, NOVA, bedrock_request, event


def answer(*blocks: dict[str, Any], stop: str = "end_turn", usage: dict[str, Any] | None = None) -> bytes:
    message = {"role": "assistant", "content": list(blocks)}
    return json.dumps({"output": {"message": message}, "stopReason": stop, "usage": usage or USAGE}).encode()


# Every `stopReason` of Converse is mapped to the outcome of an answer with text; `UNUSABLE` is no answer.
STOP_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "stop",  # The reason comes from the vendor's own tools, since none of the client's was called.
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
    "malformed_model_output": FailureKind.UNUSABLE,
    "malformed_tool_use": FailureKind.UNUSABLE,
}
UNKNOWN_REASONS = [("of_tomorrow", FailureKind.UNUSABLE), ("", FailureKind.UNUSABLE)]


def test_stop_reasons__of_the_service_model__each_has_its_outcome() -> None:
    shape: Any = Session().get_service_model("bedrock-runtime").shape_for("StopReason")
    assert set(shape.enum) == set(STOP_REASONS)


@pytest.mark.parametrize(("stop", "outcome"), [*STOP_REASONS.items(), ("of_tomorrow", "stop"), ("", "stop")])
def test_finish__each_stop_reason_behind_a_text__openais_word_or_unusable(stop: str, outcome: str) -> None:
    whole = answer({"text": "x"}, stop=stop)
    frames = START, delta(text="x"), ended(0), event("messageStop", stopReason=stop), METADATA
    if outcome is FailureKind.UNUSABLE:
        with pytest.raises(ProviderError) as caught:
            ADAPTER.parse_response(bedrock_request(), whole)
        assert (caught.value.kind, caught.value.usage) == (outcome, COUNTS)
        with pytest.raises(ProviderError) as caught:
            run(*frames)
        assert (caught.value.kind, caught.value.usage) == (outcome, COUNTS)
        return
    assert choice_of(whole)["finish_reason"] == outcome
    assert run(*frames)[-1]["choices"][0]["finish_reason"] == outcome


@pytest.mark.parametrize(("stop", "outcome"), [*STOP_REASONS.items(), *UNKNOWN_REASONS])
def test_finish__each_stop_reason_of_an_empty_answer__empty_or_unusable(stop: str, outcome: str) -> None:
    frames = START, event("messageStop", stopReason=stop), METADATA
    if outcome is FailureKind.UNUSABLE:
        with pytest.raises(ProviderError, match=stop or "none given"):
            ADAPTER.parse_response(bedrock_request(), answer(stop=stop))
        with pytest.raises(ProviderError, match=stop or "none given"):
            run(*frames)
        return
    choice = choice_of(answer(stop=stop))
    assert (choice["message"]["content"], choice["finish_reason"]) == ("", outcome)
    assert run(*frames)[-1]["choices"][0]["finish_reason"] == outcome


@pytest.mark.parametrize(("model", "form"), [(CLAUDE, "anthropic-claude-v1"), (NOVA, "amazon-bedrock-v1")])
def test_reasoning__signed_and_redacted__comes_back_as_it_was(model: str, form: str) -> None:
    redacted = base64.b64encode(b"RXRr\xff+/==").decode()
    blocks: list[dict[str, Any]] = [
        {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "c2ln"}}},
        {"reasoningContent": {"redactedContent": redacted}},
        {"text": "Yes."},
    ]
    request = bedrock_request(model)
    message = choice_of(answer(*blocks), request)["message"]
    assert (message["content"], message["reasoning_content"]) == ("Yes.", "Hm.")
    assert [detail["format"] for detail in message["reasoning_details"]] == [form, form]
    user = {"role": "user", "content": "Go on."}
    again = ADAPTER.build_request(bedrock_request(model, messages=[user, message, user]), KEYS)
    assert json.loads(again.body)["messages"][1]["content"] == blocks
    streamed = deltas(
        START,
        delta(reasoningContent={"text": "H"}),
        delta(reasoningContent={"text": "m."}),
        delta(reasoningContent={"signature": "c2ln"}),
        ended(0),
        delta(1, reasoningContent={"redactedContent": redacted[:4]}),
        delta(1, reasoningContent={"redactedContent": redacted[4:]}),
        ended(1),
        delta(2, text="Yes."),
        STOP,
        request=request,
    )
    details = [detail for item in streamed for detail in item.get("reasoning_details", ())]
    assert details == message["reasoning_details"]
    assert "".join(item.get("reasoning_content", "") for item in streamed) == "Hm."
