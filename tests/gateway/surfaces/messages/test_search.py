"""The search of the web of the Messages API by other vendors: its tool, its blocks, and their way back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from gateway.pipeline.optional import without_search
from gateway.surfaces.messages.surface import SURFACE
from integrations.providers.errors import UnsupportedParameterError
from integrations.registry import adapter_for
from tests.gateway.surfaces.messages import clients
from tests.integrations.exchanges import credentials
from tests.tables.cases import tabled

Json = dict[str, Any]
SEARCH: Json = {"type": "web_search_20250305", "name": "web_search", "max_uses": 8}
CHOSEN: Json = {"allowed_domains": ["a.test"]}
USER: Json = {"role": "user", "content": "Where is it?"}
TEXT = "It waits at Nord."
CITED: list[Json] = [
    {
        "type": "url_citation",
        "url_citation": {"url": "https://a.test", "title": "Nord", "start_index": 0, "end_index": len(TEXT)},
    }
]


def read(*tools: Json, messages: list[Json] | None = None) -> Any:
    body = {"model": "m", "max_tokens": 10, "messages": messages or [USER], "tools": [*tools]}
    return SURFACE.read(json.dumps(body).encode())


def blocks_of(request: Any, *, stream: bool) -> list[Json]:
    """Returns the blocks of an answer with a citation, as the official SDK reads them."""
    end = {"index": 0, "finish_reason": "stop"}
    if not stream:
        message = {"role": "assistant", "content": TEXT, "annotations": CITED}
        completion = {"id": "c", "created": 1, "model": "m", "choices": [{**end, "message": message}]}
        whole = SURFACE.answer(request, json.dumps(completion).encode(), "r-1")
        return [block.to_dict() for block in clients.read_whole(whole, 200).content]
    encoder = SURFACE.stream(request, "r-1")
    deltas = [{"content": TEXT}, {"annotations": CITED}]
    chunks = [json.dumps({"choices": [{"index": 0, "delta": delta}]}).encode() for delta in deltas]
    last = json.dumps({"choices": [{**end, "delta": {}}]}).encode()
    return [block.to_dict() for block in clients.read_stream(encoder.feed(chunks) + encoder.close([last])).content]


@pytest.mark.parametrize(
    ("provider", "model", "place", "sites"),
    [
        ("anthropic", "claude-sonnet-5", "tools", [{"type": SEARCH["type"], "name": "web_search", **CHOSEN}]),
        ("perplexity", "sonar", "search_domain_filter", ["a.test"]),
    ],
)
def test_tool__of_chosen_sites__is_that_of_vendors_with_a_filter(
    provider: str, model: str, place: str, sites: list[Any]
) -> None:
    asked = replace(clients.chat_request(read({**SEARCH, **CHOSEN}).body), model=model, is_translated=True)

    sent = adapter_for(provider).build_request(asked, credentials(provider))

    assert json.loads(sent.body)[place] == sites
    assert not sent.warnings


@tabled
def test_tool__of_chosen_sites__is_left_out_elsewhere_and_named(provider: str, model: str) -> None:
    asked = replace(clients.chat_request(read({**SEARCH, **CHOSEN}).body), model=model, is_translated=True)
    with pytest.raises(UnsupportedParameterError) as refused:
        adapter_for(provider).build_request(asked, credentials(provider))

    left = without_search(asked, refused.value)

    assert "web_search_options" not in json.loads(left.body)
    assert any(warning.startswith("web_search: dropped, ") for warning in left.warnings)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_pages__that_were_found__are_blocks_that_no_vendor_gets_back(stream: bool) -> None:
    blocks = blocks_of(read(SEARCH), stream=stream)

    by_type = {block["type"]: block for block in blocks}
    assert by_type.keys() == {"server_tool_use", "web_search_tool_result", "text"}
    result = by_type["web_search_tool_result"]
    assert result["tool_use_id"] == by_type["server_tool_use"]["id"]
    assert [(page["url"], page["title"]) for page in result["content"]] == [("https://a.test", "Nord")]
    assert [citation["url"] for citation in by_type["text"]["citations"]] == ["https://a.test"]
    later = [USER, {"role": "assistant", "content": blocks}, USER]
    forwarded = json.loads(SURFACE.forwarded(json.dumps({"model": "m", "messages": later}).encode()))
    assert forwarded["messages"][1]["content"] == [{"type": "text", "text": TEXT}]
    translated = json.loads(read(SEARCH, messages=later).body)["messages"][1]
    assert translated == {"role": "assistant", "content": TEXT}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_pages__without_the_tool__are_citations_alone(stream: bool) -> None:
    blocks = blocks_of(read({"name": "f", "input_schema": {"type": "object"}}), stream=stream)

    assert [block["type"] for block in blocks] == ["text"]
