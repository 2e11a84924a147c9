"""Tests that the fields which look-alikes add to OpenAI's answers reach the client unchanged, whole and streamed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from integrations.registry import adapter_for
from tests.integrations.exchanges import USAGE, chat_request, chunk, completion, decoded, run, sse, translator

# Each vendor has additional fields: at the top of an answer or chunk, in its choice, in its message or delta. Each
# entry's comment names the vendor's page.
EXTRAS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    # The page of Perplexity is https://docs.perplexity.ai/api-reference/chat-completions-post
    "perplexity": (
        {"citations": ["https://a.test"], "search_results": [{"title": "a", "url": "https://a.test"}]},
        {},
        {},
    ),
    # The page of Groq is https://console.groq.com/docs/compound
    "groq": ({"x_groq": {"id": "req_1"}}, {}, {"executed_tools": [{"index": 0, "type": "search", "output": "x"}]}),
    # The page of Azure is https://learn.microsoft.com/azure/ai-services/openai/concepts/content-filter
    "azure_openai": (
        {"prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {}}]},
        {"content_filter_results": {"hate": {"filtered": False, "severity": "safe"}}},
        {"context": {"citations": [{"title": "a", "url": "https://a.test"}]}},
    ),
    # The page of OpenRouter is https://openrouter.ai/docs/api-reference/overview
    "openrouter": (
        {"provider": "Anthropic"},
        {"native_finish_reason": "end_turn"},
        {"images": [{"type": "image_url"}]},
    ),
    # The page of xAI is https://docs.x.ai/docs/guides/live-search
    "xai": ({"citations": ["https://x.test"], "system_fingerprint": "fp"}, {}, {}),
    # The page of Cerebras is https://inference-docs.cerebras.ai/api-reference/chat-completions
    "cerebras": ({"time_info": {"queue_time": 0.1}}, {}, {}),
    # The page of Z.ai is https://docs.z.ai/api-reference/llm/chat-completion
    "zai": ({"web_search": [{"title": "a", "link": "https://a.test"}], "request_id": "r"}, {}, {}),
    # The page of vLLM is https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html
    "vllm": ({"prompt_logprobs": None, "kv_transfer_params": {"a": 1}}, {"stop_reason": 7, "token_ids": [1, 2]}, {}),
    "openai_compatible": (
        {"a_field_of_tomorrow": {"x": [1, None]}},
        {"moderation": {"flagged": False}},
        {"provider_specific_fields": {"a": 1}, "audio": {"id": "audio_1"}},
    ),
}


@pytest.mark.parametrize("odd", [False, True], ids=["conforming", "to be put right"])
@pytest.mark.parametrize("provider", EXTRAS)
def test_answer__beyond_openais_shape__stays(provider: str, odd: bool) -> None:
    top, of_choice, of_message = EXTRAS[provider]
    message = {"role": "assistant", "content": "a", **of_message}
    choice = {"index": 0, "message": message, "finish_reason": "eos" if odd else "stop", **of_choice}
    sent = completion(choices=[choice], **top)
    received = json.loads(adapter_for(provider).parse_response(chat_request(), json.dumps(sent).encode()).body)
    assert received == {**sent, "choices": [{**choice, "finish_reason": "stop"}]}


@pytest.mark.parametrize("odd", [False, True], ids=["conforming", "to be put right"])
@pytest.mark.parametrize("provider", EXTRAS)
def test_stream__beyond_openais_shape__stays_in_its_chunk(provider: str, odd: bool) -> None:
    top, of_choice, of_delta = EXTRAS[provider]
    middle = chunk({"content": "a", **of_delta}, **top)
    middle["choices"][0].update(of_choice)
    first, last = chunk({"role": "assistant", "content": ""}), chunk({}, finish="stop", usage=USAGE)
    sent = {**middle, "id": "another", "created": 5, "object": "chunk"} if odd else middle
    chunks = decoded(run(translator(provider), [sse(first, sent, last)]))
    assert chunks[1] == middle


@pytest.mark.parametrize("provider", EXTRAS)
def test_stream__beyond_openais_shape_at_its_end__stays_in_the_last_chunk(provider: str) -> None:
    top, of_choice, _ = EXTRAS[provider]
    last = chunk({}, finish="stop", usage=USAGE, **top)
    last["choices"][0].update(of_choice)
    received = decoded(run(translator(provider), [sse(chunk({"content": "a"}), last)]))[-1]
    expected = {name: value for name, value in {**last, **top}.items() if value is not None}
    assert {name: value for name, value in received.items() if value is not None} == expected
