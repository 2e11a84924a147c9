"""Chat completions that are sent by the Responses API: what the vendor gets, and what comes back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from integrations.providers.base import ChatRequest, Credentials, StreamEvent
from integrations.providers.errors import FailureKind, ProviderError
from integrations.providers.openai.responses_adapter import ADAPTERS
from integrations.providers.usage import Usage
from tests.fakes.dialects.openai_responses import RESPONSES
from tests.fakes.dialects.story import Call, ReadRequest, Story
from tests.night import examples
from tests.recordings import recordings_of
from tests.tables.cases import tabled

Json = dict[str, Any]


TOOL: Json = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
ASK: Json = {"model": "gpt-5.5", "messages": [{"role": "user", "content": "Hi"}], "tools": [TOOL]}
STORY = Story(
    text="I see.",
    reasoning="Where to look?",
    signature="c2Vj",
    calls=(Call("call_1", "look", {"at": "sea"}), Call("call_2", "look", {})),
    finish="tool_calls",
    usage=Usage(prompt_tokens=30, completion_tokens=12, cache_read_tokens=8, reasoning_tokens=4),
)
PROVIDERS = sorted(ADAPTERS)
RECORDED = {str(one): one for one in recordings_of("openai.responses") if one.status == 200}


def request_of(fields: Json, *, is_translated: bool = True, crosses_vendor: bool = False) -> ChatRequest:
    return ChatRequest(
        fields["model"],
        bool(fields.get("stream")),
        json.dumps(fields).encode(),
        fields,
        is_translated=is_translated,
        crosses_vendor=crosses_vendor,
    )


def credentials(provider: str = "openai", **options: str) -> Credentials:
    made = RESPONSES[provider].credentials("https://upstream.test")
    return Credentials(1, provider, made.base_url, made.secret, options)


def read(fields: Json, provider: str = "openai", **options: Any) -> ReadRequest:
    """Returns the request as the vendor reads it. Raises AssertionError where the vendor would refuse it."""
    request = request_of({"model": "gpt-5.5", **fields}, **options)
    upstream = ADAPTERS[provider].build_request(request, credentials(provider))
    path = upstream.url.removeprefix("https://upstream.test")
    return RESPONSES[provider].read(path, upstream.headers, upstream.body)


def is_for(provider: str = "openai", option: str = "", **fields: Any) -> bool:
    options = {"responses_models": option} if option else {}
    return ADAPTERS[provider].is_for(request_of(ASK | fields), credentials(provider, **options))


def streamed(body: bytes, sizes: list[int], provider: str = "openai") -> tuple[list[Json], Any]:
    """Returns the chunks of a stream that comes in pieces of these sizes, and its translator."""
    translator = ADAPTERS[provider].stream(request_of(ASK | {"stream": True}))
    events: list[StreamEvent] = []
    for piece in _pieces(body, sizes):
        events += translator.feed(piece)
    events += translator.closing()
    return [json.loads(event.data) for event in events], translator


def _pieces(body: bytes, sizes: list[int]) -> Iterator[bytes]:
    start, number = 0, 0
    while start < len(body):
        size = sizes[number % len(sizes)]
        yield body[start : start + size]
        start, number = start + size, number + 1


def joined(chunks: list[Json]) -> Json:
    """Returns the message, the end and the usage that the chunks say together."""
    message: Json = {"content": "", "reasoning_content": "", "refusal": "", "tool_calls": [], "reasoning_details": []}
    for chunk in chunks:
        (choice,) = chunk["choices"]
        delta = choice["delta"]
        for name in ("content", "reasoning_content", "refusal"):
            message[name] += delta.get(name) or ""
        message["reasoning_details"] += delta.get("reasoning_details") or []
        for call in delta.get("tool_calls") or ():
            if "id" in call:
                message["tool_calls"].append({name: value for name, value in call.items() if name != "index"})
            else:
                _grow(message["tool_calls"][call["index"]], call)
    return {"message": message, "finish_reason": choice["finish_reason"], "usage": chunk["usage"]}


def _grow(call: Json, piece: Json) -> None:
    for kind, name in (("function", "arguments"), ("custom", "input")):
        if kind in piece:
            call[kind][name] += piece[kind][name]


def whole(body: bytes, provider: str = "openai") -> Json:
    (choice,) = json.loads(ADAPTERS[provider].parse_response(request_of(ASK), body).body)["choices"]
    empty = {"content": "", "reasoning_content": "", "refusal": "", "tool_calls": [], "reasoning_details": []}
    given_fields = {name: value for name, value in choice["message"].items() if name in empty and value is not None}
    return {"message": empty | given_fields, "finish_reason": choice["finish_reason"]}


@pytest.mark.parametrize("model", ["gpt-5.4", "gpt-5.4-mini", "gpt-5.5-2026-04-23", "gpt-5.6-terra", "gpt-6"])
def test_tools_with_reasoning__of_a_model_whose_chat_completions_refuse_them__go_by_responses(model: str) -> None:
    assert is_for(model=model, reasoning_effort="high")
    assert is_for(model=model, thinking={"type": "adaptive"})
    assert is_for(model=model)


@tabled
def test_request__that_chat_completions_serve__goes_by_chat_completions(fields: Json) -> None:
    assert not is_for(**({"reasoning_effort": "high"} | fields))


@pytest.mark.parametrize("model", ["gpt-5-codex", "gpt-5.1-codex-max", "o3-pro", "gpt-5.5-pro-2026-04-23"])
def test_model_without_chat_completions__goes_by_responses(model: str) -> None:
    assert is_for(model=model, tools=[])
    assert is_for(model=model, reasoning_effort="none")
    assert not is_for(option="none", model=model)
    assert not is_for(model=model, n=2)


@pytest.mark.parametrize("model", ["gpt-4o-prod", "gpt-5-production", "my-codexes"])
def test_name_that_only_looks_like_such_a_model__goes_by_chat_completions(model: str) -> None:
    assert not is_for(model=model)


@tabled
def test_field_that_responses_do_not_have__keeps_the_request_unless_it_is_left_out_anyway(
    fields: Json, chat: bool, fallback: bool, translated: bool
) -> None:
    asked = ASK | {"reasoning_effort": "high"} | fields
    ways = [
        request_of(asked, is_translated=False),
        request_of(asked, is_translated=False, crosses_vendor=True),
        request_of(asked),
    ]
    assert [ADAPTERS["openai"].is_for(way, credentials()) for way in ways] == [chat, fallback, translated]


def test_deployment__is_known_by_the_clients_name_of_its_model() -> None:
    fields = ASK | {"model": "eu-1", "reasoning_effort": "high", "temperature": 0.3}
    request = replace(request_of(fields), known_as="gpt-5.5")
    access = credentials("azure_openai")
    assert ADAPTERS["azure_openai"].is_for(request, access)
    upstream = ADAPTERS["azure_openai"].build_request(request, access)
    body = json.loads(upstream.body)
    assert (body["model"], body["reasoning"], "temperature" in body) == ("eu-1", {"effort": "high"}, False)


def test_option_of_the_integration__names_the_models() -> None:
    assert is_for("azure_openai", "prod-, gpt-5.5", model="prod-1")
    assert not is_for("azure_openai", "prod-", model="gpt-5.5")
    assert not is_for("azure_openai", "none", model="gpt-5.5")
    request = request_of(ASK | {"model": "prod-1", "reasoning_effort": "high", "max_tokens": 50, "temperature": 0.3})
    upstream = ADAPTERS["azure_openai"].build_request(request, credentials("azure_openai", responses_models="prod-"))
    body = json.loads(upstream.body)
    assert (body["reasoning"], body["max_output_tokens"]) == ({"effort": "high"}, 50)
    assert upstream.warnings == ("temperature: dropped, prod-1 does not take it",)


STORIES = st.builds(
    Story,
    text=st.text(max_size=40),
    reasoning=st.text(max_size=40),
    signature=st.sampled_from(["", "c2Vj"]),
    calls=st.lists(
        st.builds(Call, st.uuids().map(str), st.just("look"), st.dictionaries(st.text(max_size=5), st.integers())),
        max_size=3,
    ).map(tuple),
    finish=st.sampled_from(["stop", "length", "content_filter"]),
    usage=st.builds(Usage, st.integers(1, 10**9), st.integers(1, 10**9)),
    pieces=st.integers(1, 9),
)


@settings(max_examples=examples(20, 100))
@given(story=STORIES, sizes=st.lists(st.integers(1, 400), min_size=1, max_size=5), provider=st.sampled_from(PROVIDERS))
def test_answer__whole_and_streamed_with_any_cuts__is_the_same_and_comes_back(
    story: Story, sizes: list[int], provider: str
) -> None:
    """Whatever an answer holds, its next request brings the vendor the items back that it has given."""
    fake = RESPONSES[provider]
    answer = whole(fake.whole(story).body, provider)
    chunks, translator = streamed(b"".join(fake.stream(story).events), sizes, provider)

    said = joined(chunks)
    assert {name: said[name] for name in answer} == answer
    assert (answer["message"]["content"], answer["message"]["reasoning_content"]) == (story.text, story.reasoning)
    assert translator.usage == story.usage
    results = [{"role": "tool", "tool_call_id": call.id, "content": "done"} for call in story.calls]
    message = {"role": "assistant", **answer["message"]}
    if story.text or story.calls:
        request = read({"messages": [message, *results], "tools": [TOOL]}, provider)
        assert request.signatures == ((story.signature,) if story.signature else ())
        assert request.calls == story.calls
        assert request.turns == ((("assistant", story.text),) if story.text else ())


def test_usage__is_the_vendors_own() -> None:
    parsed = ADAPTERS["openai"].parse_response(request_of(ASK), RESPONSES["openai"].whole(STORY).body)
    chunks, translator = streamed(b"".join(RESPONSES["openai"].stream(STORY).events), [64])

    assert parsed.usage == translator.usage == STORY.usage
    usage = json.loads(parsed.body)["usage"]
    for counts in (usage, chunks[-1]["usage"]):
        assert (counts["prompt_tokens"], counts["completion_tokens"], counts["total_tokens"]) == (30, 12, 42)
        assert counts["prompt_tokens_details"]["cached_tokens"] == 8
        assert counts["completion_tokens_details"]["reasoning_tokens"] == 4


def amended(fields: Json, **error: str) -> ChatRequest | None:
    """Returns the request that is sent when the vendor has refused this one with the error."""
    body = json.dumps({"error": {"message": "No.", "type": "invalid_request_error", **error}}).encode()
    failure = ADAPTERS["openai"].classify_failure(400, {}, body)
    return ADAPTERS["openai"].amended(request_of(ASK | fields), failure)


def test_summaries__for_an_organization_that_gets_none__are_left_out_and_named() -> None:
    request = amended({"thinking": {"type": "adaptive"}, "reasoning_effort": "high"}, param="reasoning.summary")
    assert request is not None
    sent = json.loads(ADAPTERS["openai"].build_request(request, credentials()).body)
    assert sent["reasoning"] == {"effort": "high"}
    assert request.warnings == ("thinking: its text dropped, openai refuses summaries here",)
    assert amended(dict(request.fields), param="reasoning.summary") is None


def test_reasoning_of_another_organization__is_left_out_and_named() -> None:
    detail = {"type": "reasoning.encrypted", "data": "x", "format": "openai-responses-v1", "index": 0}
    messages = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Yes", "reasoning_details": [detail]},
    ]
    request = amended({"messages": messages}, code="invalid_encrypted_content")
    assert request is not None
    sent = json.loads(ADAPTERS["openai"].build_request(request, credentials()).body)
    assert [item.get("role") for item in sent["input"]] == ["user", "assistant"]
    assert request.warnings == ("messages.reasoning_details: dropped, openai cannot read them",)
    assert amended(dict(request.fields), code="invalid_encrypted_content") is None


def test_any_other_refusal__is_the_clients_to_see() -> None:
    assert amended({"thinking": {"type": "adaptive"}}, param="tools[0].name", code="invalid_value") is None


@pytest.mark.parametrize("begun", [True, False], ids=["begun", "alone"])
def test_failure_inside_a_stream__is_a_failure(begun: bool) -> None:
    body = b"".join(RESPONSES["openai"].stream_failure(STORY if begun else Story(), "overloaded").events)
    with pytest.raises(ProviderError, match="overloaded") as failed:
        streamed(body, [50])
    assert failed.value.kind is FailureKind.UNAVAILABLE


def test_stream_that_ends_early__is_unusable() -> None:
    events = RESPONSES["openai"].stream(STORY).events
    with pytest.raises(ProviderError, match="ended before its end") as failed:
        streamed(b"".join(events[:-1]), [50])
    assert failed.value.kind is FailureKind.UNUSABLE


@pytest.mark.parametrize("name", RECORDED)
@settings(max_examples=examples(20, 100))
@given(sizes=st.lists(st.integers(1, 3000), min_size=1, max_size=6))
def test_recorded_answer__is_a_chat_completion(name: str, sizes: list[int]) -> None:
    recording = RECORDED[name]
    if not recording.stream:
        answer = whole(recording.body)
        output = json.loads(recording.body)["output"]
    else:
        chunks, translator = streamed(recording.body, sizes)
        answer = joined(chunks)
        output, usage = _recorded(recording.body)
        assert translator.usage is not None
        assert (translator.usage.prompt_tokens, translator.usage.completion_tokens) == usage
    _assert_says(answer["message"], output)


def _recorded(body: bytes) -> tuple[list[Json], tuple[int, int]]:
    events = [json.loads(line[5:]) for line in body.splitlines() if line.startswith(b"data:") and b"[DONE]" not in line]
    response = events[-1]["response"]
    counts = response["usage"]
    # The encrypted reasoning is another one in the last event, where OpenAI encrypts it anew.
    output = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    return output, (counts["input_tokens"], counts["output_tokens"])


def _assert_says(message: Json, output: list[Json]) -> None:
    texts = [part["text"] for item in output if item["type"] == "message" for part in item["content"]]
    reasoning = [item for item in output if item["type"] == "reasoning"]
    thoughts = [part["text"] for item in reasoning for part in [*(item.get("content") or ()), *item["summary"]]]
    calls = [(item["call_id"], item["name"], item["arguments"]) for item in output if item["type"] == "function_call"]
    hidden = [item["encrypted_content"] for item in output if item.get("encrypted_content")]
    assert message["content"] == "\n\n".join(texts)
    assert message["reasoning_content"] == "\n\n".join(thoughts)
    said = [(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in message["tool_calls"]]
    assert said == calls
    assert [detail["data"] for detail in message["reasoning_details"]] == hidden
