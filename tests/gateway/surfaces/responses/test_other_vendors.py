"""The tools of coding agents on the Responses API, at every vendor that does not speak it, whole and streamed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.surfaces.responses.surface import SURFACE
from gateway.surfaces.responses.tools import Origin, Toolbox
from integrations.providers.native import native_adapter
from tests.fakes.dialects.registry import FAKES, distinct_providers
from tests.fakes.dialects.story import Call, Story
from tests.gateway.cases.readers import read_answer
from tests.gateway.stage import Stage, model_of
from tests.gateway.surfaces.responses.chunks import REQUEST_ID, chunk, events_of, last_chunk, read_by_the_sdk
from tests.tables.cases import stored

Json = dict[str, Any]

OTHERS = [name for name in distinct_providers() if name in FAKES and native_adapter(name, "responses") is None]
QUERY = {"type": "object", "properties": {"query": {"type": "string"}}}
SHELF: Json = {"type": "function", "name": "shelf", "parameters": QUERY, "defer_loading": True}
PATCH: Json = {
    "type": "custom",
    "name": "patch",
    "description": "Changes a file",
    "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"},
}
TOOLS: list[Json] = [
    {"type": "function", "name": "list_files", "parameters": QUERY, "strict": False},
    PATCH,
    {"type": "namespace", "name": "mcp__depot", "description": "Depot", "tools": [{**SHELF, "name": "stock"}, PATCH]},
    {"type": "tool_search", "execution": "client", "description": "Finds tools", "parameters": QUERY},
    {"type": "web_search", "external_web_access": False},
]
HISTORY: list[Json] = stored(__file__, "HISTORY")
CALLS: list[tuple[Origin, Json, Json]] = [
    (Origin("function", "list_files"), {"query": "x"}, {"type": "function_call", "name": "list_files"}),
    (Origin("custom", "patch"), {"input": 'say "hi"\n'}, {"type": "custom_tool_call", "input": 'say "hi"\n'}),
    (
        Origin("function", "stock", "mcp__depot"),
        {"query": "lamp"},
        {"type": "function_call", "name": "stock", "namespace": "mcp__depot"},
    ),
    (
        Origin("custom", "patch", "mcp__depot"),
        {"input": "*** Begin"},
        {"type": "custom_tool_call", "name": "patch", "namespace": "mcp__depot", "input": "*** Begin"},
    ),
    (
        Origin("function", "shelf", "mcp__hall"),
        {},
        {"type": "function_call", "name": "shelf", "namespace": "mcp__hall", "arguments": "{}"},
    ),
    (Origin("function", "rack"), {}, {"type": "function_call", "name": "rack"}),
    (
        Origin("tool_search", "tool_search"),
        {"query": "lamp"},
        {"type": "tool_search_call", "execution": "client", "arguments": {"query": "lamp"}},
    ),
]
BODY: Json = {"input": HISTORY, "tools": TOOLS, "store": False, "parallel_tool_calls": True}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("provider", OTHERS)
def test_tools_of_an_agent__at_every_vendor__are_called_under_the_clients_names(
    stage: Stage, provider: str, stream: bool
) -> None:
    toolbox = Toolbox.of(BODY)
    many = FAKES[provider].can.parallel_tools
    called = CALLS if many else CALLS[2:3]
    calls = [Call(f"call{n}AAAA", toolbox.name_of(origin), fields) for n, (origin, fields, _) in enumerate(called)]
    stage.play(provider, Story(calls=tuple(calls), finish="tool_calls"))

    answer = stage.gateway.client.post(
        "/api/gateway/v1/responses",
        json={"model": model_of(provider), "stream": stream, **BODY},
        headers=stage.gateway.headers,
    )

    assert answer.status_code == 200, answer.text
    assert "web_search: dropped" in answer.headers["x-svc-warning"]
    items = [item for item in read_answer("responses", answer).items if item["type"] != "reasoning"]
    assert len(items) == len(called), items
    for item, (_, _, expected) in zip(items, called, strict=True):
        assert expected.items() <= item.items(), item
    (request,) = stage.requests_of(provider)
    assert set(request.tools) == set(toolbox.functions)
    names = [toolbox.name_of(origin) for origin in (CALLS[6][0], CALLS[2][0], CALLS[1][0])]
    assert [call.name for call in request.calls] == names
    assert request.calls[2].arguments == {"input": "*** Begin"}
    assert toolbox.name_of(CALLS[4][0]) in request.results[0][1]
    assert [text for _, text in request.results[1:]] == ["none", "done"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("provider", OTHERS)
def test_search_of_the_web__at_every_vendor__is_the_vendors_own_or_named(
    stage: Stage, provider: str, stream: bool
) -> None:
    script = stage.play(provider, Story(text="Found"))
    body = {"model": model_of(provider), "input": "Lamps?", "stream": stream, "tools": [{"type": "web_search"}]}

    answer = stage.gateway.client.post("/api/gateway/v1/responses", json=body, headers=stage.gateway.headers)

    assert answer.status_code == 200, answer.text
    assert read_answer("responses", answer).text == "Found"
    sent = script.received[0].body
    searches = any(word in sent for word in (b"search", b"Search", b"nova_grounding"))
    assert searches is not ("web_search: dropped" in answer.headers.get("x-svc-warning", ""))


NAMES = st.text("ab_-.é/ ", min_size=1, max_size=70)
ORIGINS = st.builds(Origin, st.sampled_from(["function", "custom"]), NAMES, NAMES)


@given(origins=st.lists(ORIGINS, min_size=1, max_size=8, unique=True), sizes=st.lists(st.integers(1, 9), min_size=1))
def test_call__of_any_tool_of_a_namespace__comes_back_whole_and_streamed(
    origins: list[Origin], sizes: list[int]
) -> None:
    spaces: dict[str, list[Json]] = {}
    for origin in origins:
        spaces.setdefault(origin.namespace, []).append({"type": origin.kind, "name": origin.name})
    tools = [{"type": "namespace", "name": name, "tools": inner} for name, inner in spaces.items()]
    request = SURFACE.read(json.dumps({"model": "m", "input": "Hi", "tools": tools}).encode())
    names = [tool["function"]["name"] for tool in json.loads(request.body)["tools"]]
    assert len(set(names)) == len(origins)
    assert all(len(name) <= 64 and name.isascii() for name in names)
    arguments = json.dumps({"input": 'a "ü"\n'})
    calls = [
        {"index": n, "id": f"c{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for n, name in enumerate(names)
    ]

    message = {"role": "assistant", "content": None, "tool_calls": calls}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    whole = json.loads(SURFACE.answer(request, json.dumps({"model": "m", "choices": [choice]}).encode(), REQUEST_ID))
    stream = SURFACE.stream(request, REQUEST_ID)
    frames = [stream.feed([chunk({"tool_calls": [piece]})]) for call in calls for piece in cut(call, sizes)]
    events = events_of(b"".join([*frames, stream.close([last_chunk("tool_calls")])]))

    streamed = events[-1]["response"]["output"]
    assert streamed == whole["output"]
    assert [item.type for item in read_by_the_sdk(events).output] == [item["type"] for item in streamed]
    expected = {Origin(kind, name, space) for kind, name, space in origins}
    assert {Origin(_kind(item), item["name"], item["namespace"]) for item in streamed} == expected
    assert {item.get("input", 'a "ü"\n') for item in streamed} == {'a "ü"\n'}


def _kind(item: Json) -> str:
    return {"function_call": "function", "custom_tool_call": "custom"}[item["type"]]


def cut(call: Json, sizes: list[int]) -> list[Json]:
    """Returns the fragments of a call, whose arguments are cut into pieces of these sizes, again and again."""
    rest, pieces = call["function"]["arguments"], []
    for n in range(len(rest)):
        size = sizes[n % len(sizes)]
        pieces.append({"index": call["index"], "function": {"arguments": rest[:size]}})
        rest = rest[size:]
        if not rest:
            break
    return [{**call, "function": {"name": call["function"]["name"], "arguments": ""}}, *pieces]


_TEXT = {"type": "item_reference", "id": "msg_0199e0a0-5b5e-7a3c-9c1d-2f3a4b5c6d7e_1"}
_REASONING = {"type": "item_reference", "id": "rs_0199e0a0-5b5e-7a3c-9c1d-2f3a4b5c6d7e_2"}
_A_CALL = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
_ITS_RESULT = {"type": "function_call_output", "call_id": "c1", "output": "5"}


@pytest.mark.parametrize("references", [[_TEXT], [_TEXT, _REASONING], [_REASONING, _TEXT]])
def test_reference__to_a_text_before_a_call__is_passed_over_and_named(references: list[Json]) -> None:
    items = [{"role": "user", "content": "Hi"}, *references, _A_CALL, _ITS_RESULT]

    read = SURFACE.read(json.dumps({"model": "m", "input": items}).encode())

    assert read.untranslatable == ()
    assert len(read.warnings) == len(references)


@pytest.mark.parametrize(
    "behind", [[], [{"role": "user", "content": "Go"}], [{"role": "user", "content": "Go"}, _A_CALL, _ITS_RESULT]]
)
def test_reference__to_a_text_without_a_call__is_refused(behind: list[Json]) -> None:
    items = [{"role": "user", "content": "Hi"}, _TEXT, *behind]

    read = SURFACE.read(json.dumps({"model": "m", "input": items}).encode())

    assert [problem.partition(":")[0] for problem in read.untranslatable] == ["input[1]"]


def test_reference__to_reasoning_that_the_gateway_gave__is_passed_over_and_named() -> None:
    reference = {"type": "item_reference", "id": "rs_0199e0a0-5b5e-7a3c-9c1d-2f3a4b5c6d7e_0"}
    body = {"model": "m", "input": [{"role": "user", "content": "Hi"}, reference, {"role": "user", "content": "Go"}]}

    read = SURFACE.read(json.dumps(body).encode())

    assert read.untranslatable == ()
    assert read.warnings[0].startswith("input[1]: dropped")
