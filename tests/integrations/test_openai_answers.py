"""Tests the differences of look-alikes of the OpenAI dialect in their answers: the name of reasoning, breaking off,
errors."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from integrations.providers.errors import FailureKind, ProviderError
from integrations.providers.usage import Usage
from integrations.registry import adapter_for
from tests.integrations.exchanges import USAGE, chat_request, chunk, completion, decoded, run, sse, translator

DETAIL = {"type": "reasoning.text", "text": "because", "format": "anthropic-claude-v1", "index": 0}
SUMMARY = {"type": "reasoning.summary", "summary": "because", "format": "openai-responses-v1", "index": 0}
HIDDEN = {"type": "reasoning.encrypted", "data": "x", "format": "openai-responses-v1", "index": 0}
REASONING_CASES: list[tuple[dict[str, Any], str | None]] = [
    ({"reasoning": "because"}, "because"),
    ({"reasoning": "because", "reasoning_details": [DETAIL]}, "because"),
    ({"reasoning_details": [DETAIL]}, "because"),
    ({"reasoning_details": [SUMMARY]}, "because"),
    ({"reasoning_details": [HIDDEN]}, None),
    ({"reasoning": None, "reasoning_details": []}, None),
    ({"reasoning": {"odd": 1}}, None),
]
# The texts could be mistaken for a key of the chunk.
TEXTS = st.one_of(
    st.text(max_size=30), st.sampled_from(['"reasoning":"', '\\"reasoning":"', '{"reasoning":"x"}', "ß\u2028"])
)


@pytest.mark.parametrize(("fields", "expected"), REASONING_CASES)
def test_stream__reasoning_under_any_name__also_under_the_one_that_clients_know(
    fields: dict[str, Any], expected: str | None
) -> None:
    events = run(translator("openrouter"), [sse(chunk({"content": "", **fields}), chunk({}, finish="stop"))])
    first = decoded(events)[0]["choices"][0]["delta"]
    assert first.pop("reasoning_content", None) == expected
    assert first == {"content": "", **fields}
    assert [event.text for event in events] == ["", ""]


@given(reasoning=TEXTS, content=TEXTS, spaced=st.booleans(), ascii_only=st.booleans())
def test_stream__any_reasoning_and_text__nothing_else_changes(
    reasoning: str, content: str, spaced: bool, ascii_only: bool
) -> None:
    sent = chunk({"reasoning": reasoning, "content": content})
    separators = None if spaced else (",", ":")
    line = b"data: " + json.dumps(sent, separators=separators, ensure_ascii=ascii_only).encode() + b"\n\n"
    (event,) = translator("groq").feed(line)
    parsed_chunk = json.loads(event.data)
    assert parsed_chunk["choices"][0]["delta"].pop("reasoning_content", "") == reasoning
    assert parsed_chunk == sent
    assert event.text == content


# Each vendor's documented finish reason is mapped to its translation; OpenAI's own words stay.
REASONS = {
    "openai": "stop length tool_calls content_filter function_call",
    "azure_openai": "stop length tool_calls content_filter function_call",
    "deepseek": "stop length content_filter tool_calls insufficient_system_resource!",
    "zai": "stop tool_calls length sensitive=content_filter network_error! model_context_window_exceeded=length",
    "openrouter": "tool_calls stop length content_filter error!",
    "together": "stop eos=stop length tool_calls function_call",
    "groq": "stop length tool_calls function_call",
    "xai": "stop length end_turn=stop tool_calls",
    "huggingface": "length eos_token=stop stop_sequence=stop stop tool_calls",
    "perplexity": "stop length",
    "cerebras": "stop length content_filter tool_calls",
    "fireworks": "stop length tool_calls error!",
    "ollama": "stop length tool_calls",
    "snowflake": "stop length tool_calls end_turn=stop max_tokens=length tool_use=tool_calls refusal=content_filter",
    "vllm": "stop length tool_calls abort! error! repetition=stop",
    "openai_compatible": "MALFORMED_FUNCTION_CALL!! malformed_tool_use!! OTHER!! UNEXPECTED_TOOL_CALL!! stop length",
    "requesty": "SAFETY=content_filter guardrail_intervened=content_filter MAX_TOKENS=length STOP=stop",
    "sandbox": "stop length tool_calls content_filter",
}
DOCUMENTED = [(provider, word) for provider, words in REASONS.items() for word in words.split()]


def ended(word: str, content: str = "Hal") -> tuple[bytes, bytes]:
    """Returns the same answer whole and streamed."""
    reason = None if word == "null" else word
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": reason}
    chunks = [chunk({"role": "assistant", "content": ""}), *([chunk({"content": content})] if content else [])]
    last = chunk({}, finish=reason, usage=USAGE)
    return json.dumps(completion(choices=[choice])).encode(), sse(*chunks, last)


def reasons_of(provider: str, word: str, content: str = "Hal") -> set[str]:
    whole, streamed = ended(word, content)
    answer = adapter_for(provider).parse_response(chat_request(), whole)
    assert json.loads(answer.body)["choices"][0]["message"]["content"] == content
    stream = translator(provider)
    chunks = decoded(run(stream, [streamed]))
    last_reason = chunks[-1]["choices"][0]["finish_reason"]
    return {
        answer.finish_reason,
        json.loads(answer.body)["choices"][0]["finish_reason"],
        stream.finish_reason,
        last_reason,
    }


@pytest.mark.parametrize(("provider", "word"), [row for row in DOCUMENTED if "!" not in row[1]], ids=str)
def test_reason__documented__one_that_clients_know(provider: str, word: str) -> None:
    theirs, _, ours = word.partition("=")
    assert reasons_of(provider, theirs) == {ours or theirs}
    assert reasons_of(provider, theirs, content="") == {ours or theirs}


@pytest.mark.parametrize("content", ["Hal", ""])
@pytest.mark.parametrize(("provider", "word"), [row for row in DOCUMENTED if "!" in row[1]], ids=str)
def test_reason__of_an_answer_that_is_none__a_failure_that_is_billed(provider: str, word: str, content: str) -> None:
    kind = FailureKind.UNUSABLE if word.endswith("!!") else FailureKind.UNAVAILABLE
    whole, streamed = ended(word.rstrip("!"), content)
    with pytest.raises(ProviderError, match=word.rstrip("!")) as caught:
        adapter_for(provider).parse_response(chat_request(), whole)
    assert (caught.value.kind, caught.value.usage) == (kind, Usage(9, 4))
    stream = translator(provider)
    assert "".join(event.text for event in stream.feed(streamed)) == content
    with pytest.raises(ProviderError, match=word.rstrip("!")) as caught:
        stream.closing()
    assert (caught.value.kind, caught.value.usage) == (kind, Usage(9, 4))


@pytest.mark.parametrize("word", ["tomorrows", "null", ""])
def test_reason__unknown__ends_a_text_and_is_no_answer_by_itself(word: str) -> None:
    assert reasons_of("openai_compatible", word) == {"stop"}
    whole, streamed = ended(word, "")
    with pytest.raises(ProviderError) as caught:
        adapter_for("openai_compatible").parse_response(chat_request(), whole)
    assert (caught.value.kind, caught.value.usage) == (FailureKind.UNUSABLE, Usage(9, 4))
    with pytest.raises(ProviderError) as caught:
        run(translator("openai_compatible"), [streamed])
    assert (caught.value.kind, caught.value.usage) == (FailureKind.UNUSABLE, Usage(9, 4))


def test_answer__of_perplexity__search_results_and_citations_stay() -> None:
    extras: dict[str, Any] = {
        "citations": ["https://a.test"],
        "search_results": [{"title": "t", "url": "https://a.test"}],
    }
    usage = {**USAGE, "search_context_size": "low", "cost": {"total_cost": 0.1}}
    choice = {**completion()["choices"][0], "delta": {"role": "assistant", "content": ""}}
    body = json.dumps(completion(choices=[choice], usage=usage, **extras)).encode()
    assert adapter_for("perplexity").parse_response(chat_request(), body).body is body
    events = run(
        translator("perplexity"), [sse(chunk({"content": "a"}, usage=usage, **extras), chunk({}, finish="stop"))]
    )
    assert {name: decoded(events)[0][name] for name in extras} == extras
