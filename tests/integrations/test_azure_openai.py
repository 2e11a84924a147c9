from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from integrations.providers.errors import FailureKind, ProviderError
from integrations.registry import adapter_for
from tests.integrations.exchanges import chat_request, chunk, credentials, decoded, run, sse, translator


@pytest.mark.parametrize(
    ("base_url", "extra", "url"),
    [
        (
            "https://res.openai.azure.com/",
            {},
            "https://res.openai.azure.com/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21",
        ),
        (
            "https://res.openai.azure.com",
            {"api_version": "2025-01-01-preview", "deployment": "my dep/1"},
            "https://res.openai.azure.com/openai/deployments/my%20dep%2F1/chat/completions"
            "?api-version=2025-01-01-preview",
        ),
        ("https://res.openai.azure.com/openai/v1", {}, "https://res.openai.azure.com/openai/v1/chat/completions"),
        (
            "https://res.services.ai.azure.com/models",
            {"api_version": "2024-05-01-preview"},
            "https://res.services.ai.azure.com/models/chat/completions?api-version=2024-05-01-preview",
        ),
        (
            "https://proxy.example/openai/deployments/fixed",
            {},
            "https://proxy.example/openai/deployments/fixed/chat/completions?api-version=2024-10-21",
        ),
    ],
)
def test_build_request__each_layout__documented_address(base_url: str, extra: dict[str, str], url: str) -> None:
    request = adapter_for("azure_openai").build_request(chat_request(), credentials("azure_openai", base_url, **extra))
    assert request.url == url
    assert request.headers["api-key"] == "sk-test"
    assert "authorization" not in request.headers
    assert json.loads(request.body)["model"] == "gpt-4o"


def test_build_request__no_base_url__credentials_at_fault() -> None:
    with pytest.raises(ProviderError, match="base_url") as caught:
        adapter_for("azure_openai").build_request(chat_request(), credentials("azure_openai"))
    assert caught.value.kind is FailureKind.CREDENTIALS


@pytest.mark.parametrize(
    ("base_url", "version", "expected"),
    [
        ("https://res.openai.azure.com", "2024-10-21", {"include_usage": True}),
        ("https://res.openai.azure.com", "2024-09-01-preview", {"include_usage": True}),
        ("https://res.openai.azure.com", "2024-06-01", None),
        ("https://res.services.ai.azure.com/models", "2024-05-01-preview", {"include_usage": True}),
        ("https://res.openai.azure.com/openai/v1", "", {"include_usage": True}),
    ],
)
def test_build_request__stream__usage_requested_where_the_version_has_it(
    base_url: str, version: str, expected: dict[str, bool] | None
) -> None:
    access = credentials("azure_openai", base_url, api_version=version)
    request = adapter_for("azure_openai").build_request(chat_request(stream=True, stream_options={}), access)
    assert json.loads(request.body).get("stream_options") == expected


def test_build_request__models_of_foundry__extra_parameters_pass() -> None:
    adapter, version = adapter_for("azure_openai"), "2024-05-01-preview"
    foundry = credentials("azure_openai", "https://res.services.ai.azure.com/models", api_version=version)
    assert adapter.build_request(chat_request(), foundry).headers["extra-parameters"] == "pass-through"
    resource = credentials("azure_openai", "https://res.openai.azure.com")
    assert "extra-parameters" not in adapter.build_request(chat_request(), resource).headers


def test_build_request__own_data__stays_and_is_named_elsewhere() -> None:
    request = replace(chat_request(data_sources=[{"type": "azure_search"}]), crosses_vendor=True)
    upstream_request = adapter_for("azure_openai").build_request(
        request, credentials("azure_openai", "https://r.openai.azure.com")
    )
    assert json.loads(upstream_request.body)["data_sources"] == [{"type": "azure_search"}]
    other = adapter_for("openai").build_request(request, credentials())
    assert other.warnings == ("data_sources: dropped, openai has no counterpart",)


FILTERED = {"hate": {"filtered": False, "severity": "safe"}}


def test_stream__filter_results__kept_in_the_chunks_that_leave() -> None:
    prompt = chunk(prompt_filter_results=[{"prompt_index": 0, "content_filter_results": FILTERED}])
    text = chunk({"content": "a"})
    text["choices"][0]["content_filter_results"] = FILTERED
    late = {
        **chunk({}),
        "choices": [{"index": 0, "finish_reason": None, "content_filter_offsets": {"check_offset": 0}}],
    }
    body = sse({**prompt, "id": "", "model": "", "object": ""}, text, late, chunk({}, finish="stop"))
    chunks = decoded(run(translator("azure_openai"), [body]))
    assert chunks[0]["choices"][0]["content_filter_results"] == FILTERED
    assert chunks[-1]["prompt_filter_results"] == prompt["prompt_filter_results"]
    assert [item["id"] for item in chunks] == ["chatcmpl-1"] * len(chunks)


def test_stream__stopped_by_the_filter__an_answer() -> None:
    stream = translator("azure_openai")
    run(stream, [sse(chunk({"content": "a"}), chunk({}, finish="content_filter"))])
    assert stream.finish_reason == "content_filter"


def test_stream__filter_error__keeps_its_kind() -> None:
    error = {"error": {"code": "content_filter", "message": "The response was filtered"}}
    with pytest.raises(ProviderError, match="was filtered") as caught:
        run(translator("azure_openai"), [sse(error)])
    assert caught.value.kind is FailureKind.CONTENT_FILTER
