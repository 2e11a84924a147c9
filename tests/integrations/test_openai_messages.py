"""Tests messages at providers of the OpenAI dialect: roles, media, and fields of other vendors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from integrations.providers.base import ChatRequest, Media
from integrations.providers.errors import UnsupportedParameterError
from integrations.providers.openai.dialect import Dialect
from integrations.registry import adapter_for, providers
from tests.integrations.exchanges import chat_request, credentials

PNG = Media("image/png", b"\x89PNG")
PDF = Media("application/pdf", b"%PDF-")
PDF_DATA = "data:application/pdf;base64,JVBERi0="
IMAGE = "https://files.test/a.png"
REPORT = "https://files.test/r/report.pdf?x=1"
USER = {"role": "user", "content": "Hi"}
CLAUDE = {"type": "reasoning.text", "text": "t", "signature": "s", "format": "anthropic-claude-v1", "index": 0}
GEMINI = {"type": "reasoning.encrypted", "data": "d", "format": "google-gemini-v1", "index": 1}
CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "weather", "arguments": "{}"},
    "extra_content": {"google": {"thought_signature": "x"}},
}
PLAIN_CALL = {name: value for name, value in CALL.items() if name != "extra_content"}
OF_OPENAI = [name for name in providers() if isinstance(adapter_for(name).traits, Dialect) and name != "mistral"]
STRICT = ("openai", "azure_openai", "groq", "deepseek", "xai", "together", "fireworks", "cerebras", "zai", "ollama")


def request_of(*messages: Mapping[str, Any], model: str = "m-1", **more: Any) -> ChatRequest:
    return replace(chat_request(model, messages=list(messages)), **more)


def sent(provider: str, *messages: Mapping[str, Any], model: str = "m-1", **more: Any) -> list[Any]:
    upstream = adapter_for(provider).build_request(
        request_of(*messages, model=model, **more), credentials(provider, "https://upstream.test/v1")
    )
    assert not upstream.warnings
    messages_sent: list[Any] = json.loads(upstream.body)["messages"]
    return messages_sent


def test_result__with_a_part_of_no_kind__goes_as_it_is() -> None:
    odd = {"role": "tool", "tool_call_id": "c", "content": [{"type": ["image_url"]}, {"type": "image_url"}]}
    assert {"type": ["image_url"]} in sent("groq", {"role": "user", "content": "hi"}, odd)[1]["content"]


def fetched(provider: str, *messages: Mapping[str, Any]) -> tuple[str, ...]:
    return adapter_for(provider).needs(request_of(*messages), credentials(provider, "https://upstream.test/v1")).media


def user(*parts: Mapping[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(parts)}


def image(url: str, **more: Any) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url, **more}}


def document(url: str, **more: Any) -> dict[str, Any]:
    return {"type": "document_url", "document_url": {"url": url}, **more}


def answer(**fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": "Hello", **fields}


@pytest.mark.parametrize("provider", STRICT)
def test_history__vendor_state__never_reaches_another_vendor(provider: str) -> None:
    history = answer(reasoning_details=[CLAUDE, GEMINI], thinking_blocks=[{"type": "thinking"}], tool_calls=[CALL])
    result = {"role": "tool", "tool_call_id": "call_1", "content": "no", "is_error": True}
    assert sent(provider, USER, history, result) == [
        USER,
        answer(tool_calls=[PLAIN_CALL]),
        {"role": "tool", "tool_call_id": "call_1", "content": "no"},
    ]


def test_history__reasoning_details__to_those_that_gave_them() -> None:
    history = answer(reasoning_details=[CLAUDE, GEMINI])
    assert sent("openrouter", USER, history)[1] == history
    assert sent("openrouter", USER, history, crosses_vendor=True)[1] == history
    assert sent("snowflake", USER, history)[1] == answer(reasoning_details=[CLAUDE])
    joined = {**CLAUDE, "format": "anthropic-claude-v1" * 2}
    assert sent("snowflake", USER, answer(reasoning_details=[joined]))[1] == answer(reasoning_details=[joined])


@pytest.mark.parametrize("provider", ["openai_compatible", "sandbox"])
def test_history__at_a_server_that_may_be_anything__untouched_but_on_a_fallback(provider: str) -> None:
    history = answer(reasoning_details=[CLAUDE], thinking_blocks=[{}], tool_calls=[CALL], reasoning_content="r")
    assert sent(provider, USER, history)[1] == history
    assert sent(provider, USER, history, crosses_vendor=True)[1] == answer(tool_calls=[PLAIN_CALL])


@pytest.mark.parametrize(
    ("provider", "model", "expected"),
    [
        ("openai", "gpt-5", {}),
        ("groq", "openai/gpt-oss-20b", {"reasoning": "r"}),
        ("groq", "moonshotai/kimi-k2-instruct", {}),
        ("cerebras", "gpt-oss-120b", {"reasoning": "r"}),
        ("xai", "grok-4", {"reasoning_content": "r"}),
        ("zai", "glm-4.6", {"reasoning_content": "r"}),
        ("perplexity", "sonar", {}),
        ("vllm", "qwen3", {"reasoning": "r", "reasoning_content": "r"}),
        ("ollama", "qwen3", {"reasoning": "r", "reasoning_content": "r"}),
    ],
)
@pytest.mark.parametrize("crosses_vendor", [False, True])
def test_history__reasoning_text__where_and_how_it_is_taken(
    provider: str, model: str, expected: dict[str, Any], crosses_vendor: bool
) -> None:
    messages = sent(provider, USER, answer(reasoning_content="r"), model=model, crosses_vendor=crosses_vendor)
    assert messages[1] == answer(**expected)


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
def test_history__reasoning_at_vllm__under_both_names_and_the_rest_untouched(name: str) -> None:
    history = answer(reasoning_details=[CLAUDE], thinking_blocks=[{}], tool_calls=[CALL], **{name: "r"})
    assert sent("vllm", USER, history)[1] == history | {"reasoning": "r", "reasoning_content": "r"}


def without_parameters(**fields: Any) -> list[dict[str, Any]]:
    call = {**PLAIN_CALL, "function": {"name": "weather", **fields}}
    return [USER, answer(tool_calls=[call]), {"role": "tool", "tool_call_id": "call_1", "content": "18"}]


@pytest.mark.parametrize("provider", OF_OPENAI)
@pytest.mark.parametrize("arguments", ["", "  ", "\n", None])
@pytest.mark.parametrize("crosses_vendor", [False, True])
def test_history__call_without_parameters__has_an_empty_object(
    provider: str, arguments: str | None, crosses_vendor: bool
) -> None:
    messages = sent(provider, *without_parameters(arguments=arguments), crosses_vendor=crosses_vendor)
    assert messages == without_parameters(arguments="{}")


def test_history__arguments_of_any_kind__a_text_of_the_same() -> None:
    assert sent("openai", *without_parameters(arguments='{"a": ""}')) == without_parameters(arguments='{"a": ""}')
    function = {"role": "assistant", "content": None, "function_call": {"name": "weather", "arguments": ""}}
    assert sent("openai", USER, function)[1]["function_call"] == {"name": "weather", "arguments": "{}"}


@pytest.mark.parametrize("provider", ["vllm", "openai_compatible"])
def test_result__with_an_image_at_a_server_of_an_unknown_kind__as_the_client_knows_it_to_take(provider: str) -> None:
    picture = image("data:image/png;base64,iVBO")
    _, call, result = without_parameters(arguments="{}")
    result["content"] = [{"type": "text", "text": "a photo"}, picture]

    assert sent(provider, USER, call, result) == [USER, call, result]
    *_, text, attached = sent(provider, USER, call, result, is_translated=True)
    assert text == {**result, "content": [{"type": "text", "text": "a photo"}]}
    assert attached == user({"type": "text", "text": "Attached: the result of tool call call_1."}, picture)
    assert sent("openrouter", USER, call, result, is_translated=True) == [USER, call, result]


def test_history__reasoning_at_deepseek__kept_where_it_is_required() -> None:
    called = answer(reasoning_content="r", reasoning="r", tool_calls=[PLAIN_CALL])
    last = answer(reasoning_content="r")
    assert sent("deepseek", USER, called, last) == [USER, called, last]
    plain_call = answer(reasoning_content="r", tool_calls=[PLAIN_CALL])
    assert sent("deepseek", USER, called, last, crosses_vendor=True) == [USER, plain_call, answer()]


CONTROL = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}
POINT = {"mode": "explicit", "ttl": "12h"}


def marked(**markers: Any) -> dict[str, Any]:
    """Returns a message with these markers on itself, on a part and on a call."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}, **markers}
    return answer(content=[{"type": "text", "text": "a", **markers}], tool_calls=[call], **markers)


@pytest.mark.parametrize("crosses_vendor", [False, True])
@pytest.mark.parametrize(
    ("provider", "given", "taken"),
    [
        ("openai", {"cache_control": CONTROL}, {}),
        (
            "azure_openai",
            {"cache_control": CONTROL, "prompt_cache_breakpoint": POINT},
            {"prompt_cache_breakpoint": POINT},
        ),
        ("openai", {"prompt_cache_breakpoint": POINT}, {"prompt_cache_breakpoint": POINT}),
        ("groq", {"cache_control": CONTROL, "prompt_cache_breakpoint": POINT}, {}),
        ("deepseek", {"prompt_cache_breakpoint": POINT}, {}),
        ("openrouter", {"cache_control": CONTROL}, {"cache_control": CONTROL}),
        ("dashscope", {"cache_control": CONTROL}, {"cache_control": CONTROL}),
        ("openrouter", {"cache_control": CONTROL, "prompt_cache_breakpoint": POINT}, {"cache_control": CONTROL}),
        ("openrouter", {"prompt_cache_breakpoint": POINT}, {"cache_control": HOUR}),
        ("snowflake", {"prompt_cache_breakpoint": {"mode": "explicit"}}, {"cache_control": CONTROL}),
    ],
    ids=str,
)
def test_cache_markers__each_vendors_own_and_no_other(
    provider: str, given: dict[str, Any], taken: dict[str, Any], crosses_vendor: bool
) -> None:
    assert sent(provider, USER, marked(**given), crosses_vendor=crosses_vendor)[1] == marked(**taken)


@pytest.mark.parametrize("provider", ["vllm", "openai_compatible", "sandbox"])
def test_cache_markers__at_a_server_that_may_be_anything__as_sent_but_on_a_fallback(provider: str) -> None:
    message = marked(cache_control=CONTROL, prompt_cache_breakpoint=POINT)
    assert sent(provider, message) == [message]
    assert sent(provider, message, crosses_vendor=True) == [marked()]


@pytest.mark.parametrize("provider", ["openai", "groq", "openrouter", "vllm", "openai_compatible", "sandbox"])
@pytest.mark.parametrize("crosses_vendor", [False, True])
def test_provider_specific_fields__never_leave(provider: str, crosses_vendor: bool) -> None:
    message = answer(provider_specific_fields={"content": [{"type": "server_tool_use"}]})
    assert sent(provider, USER, message, crosses_vendor=crosses_vendor)[1] == answer()


def test_fallback__call_of_a_custom_tool__itself_where_there_are_any_else_refused() -> None:
    call = {"id": "c", "type": "custom", "custom": {"name": "grep", "input": "x"}}
    message = answer(tool_calls=[call])
    assert sent("azure_openai", USER, message, crosses_vendor=True)[1] == message
    with pytest.raises(UnsupportedParameterError, match="groq does not take tool calls of type 'custom'"):
        sent("groq", USER, message, crosses_vendor=True)


def test_fallback__fields_of_a_message__only_the_common_ones() -> None:
    history = answer(annotations=[], audio={"id": "a"}, provider_specific_fields={}, refusal=None, name="n")
    assert sent("together", USER, history, crosses_vendor=True)[1] == answer(refusal=None, name="n")
    del history["provider_specific_fields"]
    assert sent("openai", USER, history)[1] == history


@pytest.mark.parametrize("provider", ["groq", "deepseek", "perplexity", "zai", "together", "cerebras", "ollama"])
def test_developer__where_the_role_is_unknown__system(provider: str) -> None:
    assert sent(provider, {"role": "developer", "content": "x"}, USER)[0] == {"role": "system", "content": "x"}


@pytest.mark.parametrize("provider", ["openai", "azure_openai", "openrouter", "xai", "vllm"])
def test_developer__where_the_role_is_known__itself_but_on_a_fallback(provider: str) -> None:
    message = {"role": "developer", "content": "x"}
    assert sent(provider, message, USER)[0] == message
    assert sent(provider, message, USER, crosses_vendor=True)[0]["role"] == "system"


@pytest.mark.parametrize("provider", ["openai", "groq", "xai", "openrouter", "together", "perplexity", "vllm"])
def test_image__of_any_kind__as_it_came(provider: str) -> None:
    message = user(image(IMAGE, detail="low"), image("data:image/png;base64,iVBO"))
    assert sent(provider, message) == [message]
    assert fetched(provider, message) == ()


def test_image__where_data_is_taken_only__fetched() -> None:
    message = user(image(IMAGE, detail="low"), image(IMAGE), image("data:image/png;base64,iVBO"))
    assert fetched("ollama", message) == (IMAGE,)
    (sent_message,) = sent("ollama", message, media={IMAGE: PNG})
    data = "data:image/png;base64,iVBORw=="
    assert sent_message == user(image(data, detail="low"), image(data), image("data:image/png;base64,iVBO"))
    with pytest.raises(UnsupportedParameterError, match="by address"):
        sent("ollama", message)


def test_image__where_there_are_none__refused() -> None:
    with pytest.raises(UnsupportedParameterError, match="deepseek does not take images") as caught:
        sent("deepseek", user(image(IMAGE)))
    assert caught.value.parameter == "messages"


@pytest.mark.parametrize("provider", ["openai", "azure_openai"])
def test_document__by_address_where_data_is_taken_only__fetched_and_named(provider: str) -> None:
    message = user(document(REPORT), document(PDF_DATA, name="mine.pdf"))
    assert fetched(provider, message) == (REPORT,)
    (sent_message,) = sent(provider, message, media={REPORT: PDF})
    assert sent_message["content"] == [
        {"type": "file", "file": {"filename": "report.pdf", "file_data": PDF_DATA}},
        {"type": "file", "file": {"filename": "mine.pdf", "file_data": PDF_DATA}},
    ]
    assert fetched(provider, user(document(PDF_DATA))) == ()


def test_document__at_openrouter__file_with_address_and_cache_marker() -> None:
    marker = {"cache_control": {"type": "ephemeral"}}
    (message,) = sent("openrouter", user(document(REPORT, **marker)))
    assert message["content"] == [{"type": "file", "file": {"filename": "report.pdf", "file_data": REPORT}, **marker}]


def test_document__at_perplexity__address_or_bare_base64() -> None:
    file = {"type": "file", "file": {"filename": "f.pdf", "file_data": PDF_DATA}}
    (message,) = sent("perplexity", user(document(REPORT), document(PDF_DATA), file))
    assert message["content"] == [
        {"type": "file_url", "file_url": {"url": REPORT}, "file_name": "report.pdf"},
        {"type": "file_url", "file_url": {"url": "JVBERi0="}, "file_name": "document.pdf"},
        {"type": "file_url", "file_url": {"url": "JVBERi0="}, "file_name": "f.pdf"},
    ]


@pytest.mark.parametrize("part", [document(REPORT), {"type": "file", "file": {"file_data": PDF_DATA}}])
def test_document__where_there_are_none__refused(part: dict[str, Any]) -> None:
    for provider in ("groq", "deepseek", "xai", "together", "cerebras", "zai", "ollama", "snowflake"):
        with pytest.raises(UnsupportedParameterError, match="documents"):
            sent(provider, user(part))


def test_file__uploaded_to_a_provider__goes_to_that_one_only() -> None:
    message = user({"type": "file", "file": {"file_id": "file-1"}})
    for provider in ("openai", "xai", "perplexity"):
        assert sent(provider, message) == [message]
        with pytest.raises(UnsupportedParameterError, match="uploaded elsewhere"):
            sent(provider, message, crosses_vendor=True)


@pytest.mark.parametrize("part", [{"type": "document_url"}, {"type": "document_url", "document_url": {"url": 3}}])
def test_document__without_an_address__refused(part: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedParameterError, match="needs an object with a url"):
        sent("openai", user(part))


def test_tool_result__with_media__text_stays_and_the_media_follow_the_last_result() -> None:
    picture = image("data:image/png;base64,iVBO")
    calls = answer(content=None, tool_calls=[PLAIN_CALL, {**PLAIN_CALL, "id": "call_2"}])
    first = {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "see"}, picture]}
    second = {"role": "tool", "tool_call_id": "call_2", "content": [picture]}
    text = {"type": "text", "text": "see"}
    for tail in ([], [USER]):
        messages = sent("openai", USER, calls, first, second, *tail)
        assert messages == [
            USER,
            calls,
            {**first, "content": [text]},
            {**second, "content": "Attached: the result of tool call call_2 follows."},
            user(
                {"type": "text", "text": "Attached: the result of tool call call_1."},
                picture,
                {"type": "text", "text": "Attached: the result of tool call call_2."},
                picture,
            ),
            *tail,
        ]
    assert sent("openrouter", USER, calls, first, second) == [USER, calls, first, second]


TEXTS = st.text(max_size=20)
PARTS = st.lists(st.builds(lambda text: {"type": "text", "text": text}, TEXTS), min_size=1, max_size=3)
CONTENTS = st.one_of(TEXTS, PARTS)
MESSAGES = st.lists(
    st.one_of(
        st.builds(lambda content: {"role": "user", "content": content}, CONTENTS),
        st.builds(lambda content: {"role": "system", "content": content}, CONTENTS),
        st.builds(lambda content: {"role": "assistant", "content": content, "tool_calls": [PLAIN_CALL]}, CONTENTS),
        st.builds(lambda content: {"role": "tool", "tool_call_id": "call_1", "content": content}, CONTENTS),
    ),
    min_size=1,
    max_size=6,
)


@given(messages=MESSAGES, provider=st.sampled_from([*STRICT, "openrouter", "snowflake", "vllm"]))
def test_conversation__of_the_dialects_own_parts__the_same_bytes(messages: list[dict[str, Any]], provider: str) -> None:
    """The messages stay unchanged on a fallback too."""
    request = request_of(*messages)
    upstream = adapter_for(provider).build_request(request, credentials(provider, "https://upstream.test/v1"))
    assert upstream.body is request.body
    assert sent(provider, *messages, crosses_vendor=True) == messages


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "url", "text"]), inner),
    max_leaves=5,
)
ODD_PARTS = st.builds(
    lambda kind, value: {"type": kind, kind: value},
    st.sampled_from(["text", "image_url", "document_url", "file", "input_audio", "refusal"]),
    JSON,
)
ODD_MESSAGES = st.builds(
    lambda role, content, more: {**more, "role": role, "content": content},
    st.sampled_from(["system", "developer", "user", "assistant", "tool"]),
    st.lists(ODD_PARTS | JSON, max_size=3) | JSON,
    st.dictionaries(
        st.sampled_from(["tool_calls", "reasoning_details", "reasoning_content", "reasoning", "thinking_blocks"]), JSON
    ),
)


@given(
    messages=st.lists(ODD_MESSAGES | JSON, min_size=1, max_size=4),
    provider=st.sampled_from([*STRICT, "perplexity", "openrouter", "snowflake", "vllm"]),
    fields=st.dictionaries(
        st.sampled_from(["thinking", "tools", "tool_choice", "n", "response_format", "reasoning_effort", "metadata"]),
        JSON,
    ),
    crosses_vendor=st.booleans(),
)
def test_request__of_any_json__sent_or_refused(
    messages: list[Any], provider: str, fields: dict[str, Any], crosses_vendor: bool
) -> None:
    """A meaningless request is the provider's to refuse, and the adapter must not crash."""
    request = replace(chat_request("m-1", messages=messages, **fields), crosses_vendor=crosses_vendor)
    access = credentials(provider, "https://upstream.test/v1")
    try:
        adapter_for(provider).needs(request, access)
        upstream_request = adapter_for(provider).build_request(request, access)
    except UnsupportedParameterError as refused:
        assert refused.parameter in {"messages", *fields}
    else:
        assert json.loads(upstream_request.body)["model"] == "m-1"


@pytest.mark.parametrize("crosses_vendor", [False, True])
def test_name__at_groq_which_refuses_it__dropped_and_named(crosses_vendor: bool) -> None:
    messages = [{**USER, "name": "Ada"}, answer(name="Bot")]
    request = replace(request_of(*messages), crosses_vendor=crosses_vendor)
    upstream = adapter_for("groq").build_request(request, credentials("groq"))
    assert json.loads(upstream.body)["messages"] == [USER, answer()]
    assert upstream.warnings == ("messages.name: dropped, groq has no counterpart",)
    assert sent("cerebras", *messages) == messages


SYSTEM = {"role": "system", "content": "Be brief"}
LATER = {"role": "system", "content": [{"type": "text", "text": "In French", "cache_control": {"type": "ephemeral"}}]}
ASSISTANT = {"role": "assistant", "content": "Hello"}


@pytest.mark.parametrize("provider", ["vllm", "openai_compatible", "ollama", "together", "groq"])
def test_instructions__in_mid_conversation_of_another_protocol__are_marked_texts_of_the_user(provider: str) -> None:
    told = {"role": "developer", "content": "No lists"}
    system, user, answer, later = sent(provider, SYSTEM, told, USER, told, ASSISTANT, LATER, is_translated=True)
    assert system == {"role": "system", "content": "Be brief\n\nNo lists"}
    marked = "<system-instruction>\n{}\n</system-instruction>"
    assert user == {"role": "user", "content": "Hi\n\n" + marked.format("No lists")}
    assert answer["content"] == "Hello"
    assert [part["text"] for part in later["content"]] == [marked.format("In French")]
    assert later["role"] == "user"


@pytest.mark.parametrize("provider", ["openai", "azure_openai", "xai", "openrouter"])
def test_instructions__where_the_vendor_takes_them_anywhere__stay_in_their_place(provider: str) -> None:
    roles = [one["role"] for one in sent(provider, SYSTEM, USER, SYSTEM, ASSISTANT, USER, is_translated=True)]
    assert roles == ["system", "user", "system", "assistant", "user"]


def test_instructions__of_a_client_of_chat_completions__stay_in_their_place() -> None:
    assert sent("vllm", SYSTEM, USER, SYSTEM) == [SYSTEM, USER, SYSTEM]
