"""Strategies for requests that any client of the OpenAI dialect may send and that pass the gateway's own checks."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.integrations.adapters.subject import PDF, data_url

Json = dict[str, Any]
_ABSENT = object()

TEXTS = st.one_of(
    st.sampled_from(["one", " two ", "", "  ", "\n", "fünf 👋", "\0", "\ufeff", "\u2028 x\u3000", "x" * 100]),
    st.text(max_size=5),
)
# The ids are numbered as OpenAI and other vendors do, or have forms that no vendor accepts from another.
IDS = st.sampled_from(["call_1", "call_0", "", "toolu_01A:b/c", "x" * 70, "ünï", "call.1", "call:1", "callAAA01"])
NAMES = st.sampled_from(["f", "get_weather", "a-b_C9", "n" * 64])
ARGUMENTS = st.sampled_from(["{}", "", '{"a": {"b": [1, null, 1e3]}}', '{"s": "\\ud83d\\ude00 \\u0000"}', " { } "])
SCHEMAS: list[Json] = [
    {},
    {"type": "object"},
    {"properties": {"a": {}}},
    {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False},
    {"$defs": {"A": {"type": "object", "properties": {"n": {"$ref": "#/$defs/A"}}}}, "$ref": "#/$defs/A"},
    {"type": "object", "properties": {"e": {"enum": ["a", None, 3]}, "c": {"const": 5}, "z": {"anyOf": [{}, {}]}}},
    {"type": "object", "properties": {"t": {"type": ["string", "null"]}, "l": {"type": "array", "minItems": 2}}},
    {"type": "object", "properties": {"properties": {"type": "string"}, "$ref": {"type": "string"}}},
    {"type": "object", "additionalProperties": {"type": "string"}, "title": "X"},
    {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {"a": True}},
]
PARTS = st.one_of(
    TEXTS.map(lambda text: {"type": "text", "text": text}),
    TEXTS.map(lambda text: {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}),
    st.sampled_from(
        [
            {"type": "image_url", "image_url": {"url": data_url()}},
            {"type": "image_url", "image_url": {"url": "https://example.com/a.png", "detail": "high"}},
            {"type": "file", "file": {"filename": "a b?.pdf", "file_data": data_url("application/pdf", PDF)}},
            {"type": "document_url", "document_url": {"url": "https://example.com/a.pdf"}},
            {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
        ]
    ),
)
CLAUDES: Json = {"format": "anthropic-claude-v1", "index": 0}
REASONING: list[Json] = [
    {},
    {"reasoning_content": "hm"},
    {"reasoning": " "},
    {"reasoning_details": [{"type": "reasoning.text", "text": "", "signature": "c2ln", **CLAUDES}]},
    {"reasoning_details": [{"type": "reasoning.encrypted", "data": "c2ln", **CLAUDES, "index": 3}]},
    {"reasoning_details": [{"type": "reasoning.encrypted", "data": "c2ln", "format": "google-gemini-v1", "id": "f"}]},
    {"reasoning_details": [{"type": "reasoning.text", "text": "hm", "format": "mistral-thinking-v1", "index": 0}]},
    {"thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}]},
]


@st.composite
def tools(draw: st.DrawFn, name: str) -> Json:
    function: Json = {"name": name}
    for field, values in (
        ("parameters", (_ABSENT, None, *SCHEMAS)),
        ("description", (_ABSENT, None, "", "does")),
        ("strict", (_ABSENT, None, True, False)),
    ):
        value = draw(st.sampled_from(values))
        if value is not _ABSENT:
            function[field] = value
    return {"type": "function", "function": function}


@st.composite
def loops(draw: st.DrawFn) -> list[Json]:
    """Draws the calls of one answer and their results, in any order."""
    ids = draw(st.lists(IDS, min_size=1, max_size=3, unique=True))
    calls = [
        {"id": name, "type": "function", "function": {"name": draw(NAMES), "arguments": draw(ARGUMENTS)}}
        for name in ids
    ]
    content = draw(st.one_of(st.sampled_from([_ABSENT, None, "", []]), TEXTS, TEXTS.map(_refusal)))
    answer: Json = {"role": "assistant", "tool_calls": calls, **draw(st.sampled_from(REASONING))}
    if content is not _ABSENT:
        answer["content"] = content
    results = [
        {
            "role": "tool",
            "tool_call_id": name,
            "content": draw(st.one_of(TEXTS, st.lists(PARTS, max_size=2), st.sampled_from(['{"a": 1}', "[1]"]))),
            **draw(st.sampled_from([{}, {}, {"is_error": True}, {"name": "f"}])),
        }
        for name in draw(st.permutations(ids))
    ]
    return [answer, *results]


def _refusal(text: str) -> list[Json]:
    return [{"type": "refusal", "refusal": text}]


def _messages(role: str, content: st.SearchStrategy[Any], **more: Any) -> st.SearchStrategy[list[Json]]:
    return content.map(lambda value: [{"role": role, "content": value, **more}])


STEPS = st.one_of(
    _messages("system", TEXTS),
    _messages("developer", TEXTS.map(lambda text: [{"type": "text", "text": text}])),
    _messages("user", TEXTS),
    _messages("user", st.lists(PARTS, max_size=3), name="ada"),
    st.tuples(_messages("assistant", st.one_of(TEXTS, st.none())), st.sampled_from(REASONING)).map(
        lambda pair: [{**pair[0][0], **pair[1]}]
    ),
    loops(),
    loops(),
)
PARAMETERS: dict[str, tuple[Any, ...]] = {
    "parallel_tool_calls": (True, False),
    "stop": ("a", "", [], ["a", "b"], [" ", "\n"], ["1", "2", "3", "4"], None),
    "thinking": (
        {"type": "enabled"},
        {"type": "enabled", "budget_tokens": 1},
        {"type": "enabled", "budget_tokens": 100_000},
        {"type": "disabled"},
        {"type": "adaptive"},
    ),
    "reasoning_effort": ("none", "minimal", "low", "medium", "high", "xhigh", None),
    "max_tokens": (1, 100, 1025, 10**6),
    "max_completion_tokens": (1, 5000),
    "temperature": (0, 1, 2, 0.3),
    "top_p": (0, 1, 0.5, 0.99),
    "top_k": (1, 40),
    "n": (1,),
    "seed": (0, -1, 2**63),
    "frequency_penalty": (-2, 0.5, 2),
    "presence_penalty": (-2, 2),
    "logprobs": (True, False),
    "top_logprobs": (0, 5),
    "user": ("", "u1", "ada@example.com"),
    "metadata": ({}, {"team": "blue"}, {"user_id": "u"}),
    "service_tier": ("auto", "default", "flex", "priority"),
    "stream": (True, False),
    "store": (True, False),
    "logit_bias": ({}, {"1": -100}),
    "verbosity": ("low",),
    "prediction": ({"type": "content", "content": "x"},),
    "web_search_options": ({},),
    "prompt_cache_key": ("k",),
    "response_format": (
        {"type": "text"},
        {"type": "json_object"},
        *({"type": "json_schema", "json_schema": {"name": "x", "schema": schema}} for schema in SCHEMAS),
    ),
}


@st.composite
def requests(draw: st.DrawFn) -> Json:
    messages = [message for step in draw(st.lists(STEPS, max_size=5)) for message in step]
    if draw(st.booleans()) or not messages:
        messages.append({"role": "user", "content": "the end"})
    fields: Json = {"messages": messages}
    names = draw(st.lists(NAMES, max_size=3, unique=True))
    if names:
        one = {"type": "function", "function": {"name": names[0]}}
        allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [one]}}
        fields["tools"] = [draw(tools(name)) for name in names]
        choice = draw(st.sampled_from([_ABSENT, "none", "auto", "required", one, allowed]))
        if choice is not _ABSENT:
            fields["tool_choice"] = choice
    for name in draw(st.lists(st.sampled_from(sorted(PARAMETERS)), max_size=6, unique=True)):
        fields[name] = draw(st.sampled_from(PARAMETERS[name]))
    return fields
