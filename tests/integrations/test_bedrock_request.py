"""Requests to Converse, each checked against the service model that botocore ships."""

from __future__ import annotations

import base64
import json
from itertools import pairwise
from typing import Any

import pytest
from botocore.session import Session
from botocore.validate import ParamValidator
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from integrations.providers.base import NOTHING, ChatRequest, Media, Needs
from integrations.providers.bedrock import ADAPTER
from integrations.providers.bedrock.models import model_of
from integrations.providers.bedrock.request import build_body
from integrations.providers.errors import FailureKind, ProviderError, UnsupportedParameterError
from tests.integrations.bedrock_exchanges import CLAUDE, KEYS, NOVA, bedrock_request

SHAPE: Any = Session().get_service_model("bedrock-runtime").operation_model("Converse").input_shape
CLAUDE_3 = "anthropic.claude-3-haiku-20240307-v1:0"
OPUS_4_6 = "global.anthropic.claude-opus-4-6-v1"
SONNET_5 = "us.anthropic.claude-sonnet-5"
NOVA_2 = "global.amazon.nova-2-lite-v1:0"
LLAMA = "us.meta.llama4-scout-17b-instruct-v1:0"
GPT_OSS = "openai.gpt-oss-120b-1:0"
OWN_PROFILE = "arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/abc123"

USER: dict[str, Any] = {"role": "user", "content": "Hi"}
TOOL: dict[str, Any] = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"a": 1}'}}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "found"}
PNG = "data:image/png;base64," + base64.b64encode(b"\x89PNG").decode()
PDF = "data:application/pdf;base64," + base64.b64encode(b"%PDF").decode()

SUMMARIZED = {"type": "adaptive", "display": "summarized"}


def enabled(budget: int) -> dict[str, Any]:
    return {"type": "enabled", "budget_tokens": budget}


def native(model: str = CLAUDE, **fields: Any) -> dict[str, Any]:
    return checked(bedrock_request(model, **fields))[0]


def warned(model: str = CLAUDE, **fields: Any) -> tuple[str, ...]:
    return checked(bedrock_request(model, **fields))[1]


def checked(request: ChatRequest) -> tuple[dict[str, Any], tuple[str, ...]]:
    body, warnings = build_body(request)
    report = ParamValidator().validate({"modelId": request.model, **body}, SHAPE)
    assert not report.has_errors(), report.generate_report()
    return body, warnings


def contents(*messages: dict[str, Any], model: str = CLAUDE, **fields: Any) -> list[tuple[str, list[dict[str, Any]]]]:
    return [(m["role"], m["content"]) for m in native(model, messages=list(messages), **fields)["messages"]]


@pytest.mark.parametrize(
    ("model", "vendor", "version"),
    [
        (CLAUDE, "anthropic", (4, 5)),
        (CLAUDE_3, "anthropic", (3, 0)),
        ("anthropic.claude-3-5-sonnet-20241022-v2:0", "anthropic", (3, 5)),
        ("us.anthropic.claude-3-7-sonnet-20250219-v1:0", "anthropic", (3, 7)),
        ("anthropic.claude-sonnet-4-20250514-v1:0", "anthropic", (4, 0)),
        ("anthropic.claude-opus-4-1-20250805-v1:0", "anthropic", (4, 1)),
        (OPUS_4_6, "anthropic", (4, 6)),
        (SONNET_5, "anthropic", (5, 0)),
        ("anthropic.claude-fable-5-1", "anthropic", (5, 1)),
        ("anthropic.claude-v2:1", "anthropic", (0, 0)),
        ("anthropic.claude-instant-v1", "anthropic", (0, 0)),
        (f"arn:aws:bedrock:us-east-1:1:inference-profile/{CLAUDE}", "anthropic", (4, 5)),
        ("arn:aws:bedrock:us-east-1::foundation-model/amazon.nova-pro-v1:0", "amazon", (0, 0)),
        (OWN_PROFILE, "", (0, 0)),
        (GPT_OSS, "openai", (0, 0)),
        ("us.moonshotai.kimi-k3", "moonshotai", (0, 0)),
        ("moonshot.kimi-k2-thinking", "moonshot", (0, 0)),
    ],
)
def test_model_of__id_profile_or_arn__vendor_and_version(model: str, vendor: str, version: tuple[int, int]) -> None:
    assert (model_of(model).vendor, model_of(model).version) == (vendor, version)


def test_messages__blank_texts_and_neighbours__left_out_and_merged() -> None:
    assert contents(
        {"role": "system", "content": "  "},
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": " \n"},
        {"role": "user", "content": [{"type": "text", "text": ""}, {"type": "text", "text": "two"}]},
    ) == [("user", [{"text": "one"}, {"text": "two"}])]


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "assistant", "content": "Welcome!"}, USER],
        [{"role": "system", "content": "Be brief."}],
        [{"role": "user", "content": " "}],
    ],
)
def test_messages__not_begun_by_the_user__a_user_turn_stands_first(messages: list[dict[str, Any]]) -> None:
    roles = [role for role, content in contents(*messages) if content]
    assert roles[0] == "user"
    assert all(before != after for before, after in pairwise(roles))


def test_messages__prefill__without_white_space_at_its_end() -> None:
    assert contents(USER, {"role": "assistant", "content": "The answer is \n"})[-1] == (
        "assistant",
        [{"text": "The answer is"}],
    )


def test_media__bytes_by_data_url_and_fetched__one_form() -> None:
    url = "https://files.test/x"
    request = bedrock_request(
        messages=[
            {
                "role": "user",
                "content": [
                    {"type": "image_url", "image_url": {"url": PNG}},
                    {"type": "image_url", "image_url": {"url": url}},
                    {"type": "video_url", "video_url": {"url": "data:video/mp4;base64,AAAA"}},
                    {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
                ],
            }
        ]
    )
    assert ADAPTER.needs(request, KEYS) == Needs(media=(url,))
    body, _ = checked(replace(request, media={url: Media("image/webp", b"RIFF")}))
    assert body["messages"][0]["content"] == [
        {"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}},
        {"image": {"format": "webp", "source": {"bytes": b"RIFF"}}},
        {"video": {"format": "mp4", "source": {"bytes": b"\x00\x00\x00"}}},
        {"audio": {"format": "wav", "source": {"bytes": b"RIFF"}}},
    ]
    with pytest.raises(ProviderError) as caught:
        build_body(request)
    assert caught.value.kind is FailureKind.UNAVAILABLE


def test_media__in_s3__native_location() -> None:
    parts = [
        {"type": "image_url", "image_url": {"url": "s3://bucket/a/photo.JPG"}},
        {"type": "document_url", "document_url": {"url": "s3://bucket/report.v2.pdf"}, "name": "report.pdf"},
        {"type": "video_url", "video_url": {"url": "s3://bucket/film.3gp"}},
        {"type": "text", "text": "What is in them?"},
    ]
    request = bedrock_request(messages=[{"role": "user", "content": parts}])
    assert ADAPTER.needs(request, KEYS) == NOTHING
    image, document, video, _ = checked(request)[0]["messages"][0]["content"]
    assert image == {"image": {"format": "jpeg", "source": {"s3Location": {"uri": "s3://bucket/a/photo.JPG"}}}}
    assert document["document"]["name"] == "report"
    assert document["document"]["format"] == "pdf"
    assert video["video"]["format"] == "three_gp"


@pytest.mark.parametrize(
    "url",
    [
        "s3://bucket/no-extension",
        "ftp://files.test/x.png",
        "gs://bucket/x.png",
        "data:image/tiff;base64,AAAA",
        "data:application/zip;base64,AAAA",
        "data:image/png;base64,",
        "data:image/png",
        "data:image/png;base64,A",
    ],
)
def test_media__of_no_known_form__refused(url: str) -> None:
    with pytest.raises(UnsupportedParameterError, match="messages"):
        build_body(bedrock_request(messages=[{"role": "user", "content": [{"type": "image_url", "image_url": url}]}]))


def test_documents__names__allowed_characters_unique_and_a_text_beside_them() -> None:
    def file(name: str) -> dict[str, Any]:
        return {"type": "file", "file": {"filename": name, "file_data": PDF}}

    names = ["Q3 report (final).pdf", "Q3  report_(final).pdf", "Übersicht/2024.pdf", "", "....", "x" * 300]
    ((_, blocks),) = contents({"role": "user", "content": [file(name) for name in names]})
    found = [block["document"]["name"] for block in blocks if "document" in block]
    assert found[:4] == ["Q3 report (final)", "Q3 report (final) 1", "bersicht 2024", "Document 1"]
    assert len(set(found)) == len(names)
    assert all(len(name) <= 200 for name in found)
    assert blocks[-1] == {"text": "Q3 report (final)"}


@pytest.mark.parametrize(
    ("declared", "data", "name", "expected"),
    [
        ("image/png", b"\xff\xd8\xff\xe0", "", ("image", "jpeg")),
        ("image/jpeg", b"RIFF\x00\x00\x00\x00WEBPVP8 ", "", ("image", "webp")),
        ("application/octet-stream", b"%PDF-1.7", "", ("document", "pdf")),
        ("application/octet-stream", b"PK\x03\x04", "Report.DOCX", ("document", "docx")),
        ("image/png", b"short", "", ("image", "png")),
    ],
)
def test_media__declared_wrongly_or_not_at_all__told_by_bytes_or_name(
    declared: str, data: bytes, name: str, expected: tuple[str, str]
) -> None:
    url = f"data:{declared};base64,{base64.b64encode(data).decode()}"
    ((_, blocks),) = contents(
        {"role": "user", "content": [{"type": "document_url", "document_url": url, "name": name}]}
    )
    kind, form = expected
    assert blocks[0][kind]["format"] == form


@pytest.mark.parametrize(
    ("media_type", "expected"),
    [
        ("text/plain", "txt"),
        ("text/plain;charset=utf-8", "txt"),
        ("text/x-python", "txt"),
        ("text/markdown", "md"),
        ("text/csv", "csv"),
        ("text/html", "html"),
        ("application/json", "txt"),
        ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"),
    ],
)
def test_documents__media_type__bedrocks_format(media_type: str, expected: str) -> None:
    part = {"type": "document_url", "document_url": {"url": f"data:{media_type};base64,eA=="}}
    ((_, blocks),) = contents({"role": "user", "content": [part]})
    assert blocks[0]["document"]["format"] == expected


def test_tools__offered_called_answered__native_blocks() -> None:
    image = [{"type": "text", "text": "a photo"}, {"type": "image_url", "image_url": {"url": PNG}}]
    messages = [
        USER,
        {"role": "assistant", "content": "Wait.", "tool_calls": [CALL, {**CALL, "id": "call 2/ä"}]},
        {**RESULT, "content": image},
        {"role": "tool", "tool_call_id": "call 2/ä", "content": "", "is_error": True},
    ]
    tool = {"type": "function", "function": {"name": "look", "description": "Looks", "parameters": {"type": "object"}}}
    body = native(messages=messages, tools=[tool], tool_choice="auto")
    spec = {"name": "look", "inputSchema": {"json": {"type": "object"}}, "description": "Looks"}
    assert body["toolConfig"] == {"tools": [{"toolSpec": spec}], "toolChoice": {"auto": {}}}
    _, made, answered = body["messages"]
    assert made["content"][:2] == [
        {"text": "Wait."},
        {"toolUse": {"toolUseId": "call_1", "name": "look", "input": {"a": 1}}},
    ]
    strange = made["content"][2]["toolUse"]["toolUseId"]
    assert strange != "call 2/ä"
    photo = {"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}}
    assert answered["content"] == [
        {"toolResult": {"toolUseId": "call_1", "content": [{"text": "a photo"}, photo]}},
        {"toolResult": {"toolUseId": strange, "content": [{"json": {}}], "status": "error"}},
    ]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (None, None),
        ("auto", {"auto": {}}),
        ("required", {"any": {}}),
        ({"type": "function", "function": {"name": "look"}}, {"tool": {"name": "look"}}),
    ],
)
def test_tool_choice__each_form__native(choice: Any, expected: Any) -> None:
    assert native(tools=[TOOL], tool_choice=choice)["toolConfig"].get("toolChoice") == expected


def test_tool_choice__some_tools__only_those_offered() -> None:
    other = {"type": "function", "function": {"name": "other"}}
    allowed = {"mode": "required", "tools": [{"type": "function", "function": {"name": "other"}}]}
    config = native(tools=[TOOL, other], tool_choice={"type": "allowed_tools", "allowed_tools": allowed})["toolConfig"]
    assert [tool["toolSpec"]["name"] for tool in config["tools"]] == ["other"]
    assert config["toolChoice"] == {"any": {}}


def test_tool_choice__none__no_tools_unless_the_history_holds_calls() -> None:
    assert "toolConfig" not in native(tools=[TOOL], tool_choice="none")
    assert not warned(tools=[TOOL], tool_choice="none")
    history: dict[str, Any] = {"messages": [USER, CALLED, RESULT], "tools": [TOOL], "tool_choice": "none"}
    body = native(**history)
    assert [tool["toolSpec"]["name"] for tool in body["toolConfig"]["tools"]] == ["look"]
    assert body["system"] == [{"text": "Answer without calling a tool."}]
    (warning,) = warned(**history)
    assert warning.startswith("tool_choice: dropped")


def test_tools__none_offered_beside_a_history_of_calls__declared_by_name() -> None:
    body = native(messages=[USER, CALLED, RESULT])
    spec = {"name": "look", "inputSchema": {"json": {"type": "object", "properties": {}}}}
    assert body["toolConfig"] == {"tools": [{"toolSpec": spec}]}


def test_parallel_tool_calls__off__claudes_own_choice_and_a_warning_elsewhere() -> None:
    choice = {"type": "function", "function": {"name": "look"}}
    body = native(tools=[TOOL], tool_choice=choice, parallel_tool_calls=False)
    assert "toolChoice" not in body["toolConfig"]
    assert body["additionalModelRequestFields"] == {
        "tool_choice": {"type": "tool", "name": "look", "disable_parallel_tool_use": True}
    }
    assert warned(NOVA, tools=[TOOL], parallel_tool_calls=False)
    assert not warned(NOVA, tools=[TOOL], parallel_tool_calls=True)


def test_tools__strict__where_it_is_known() -> None:
    tool = {"type": "function", "function": {"name": "look", "strict": True}}
    assert native(tools=[tool])["toolConfig"]["tools"][0]["toolSpec"]["strict"] is True
    assert "strict" not in native(NOVA, tools=[tool])["toolConfig"]["tools"][0]["toolSpec"]
    assert warned(NOVA, tools=[tool]) == ("tools.look.strict: dropped, bedrock has no counterpart",)


def test_tools__of_the_vendor__passed_on_or_refused() -> None:
    grounding = {"systemTool": {"name": "nova_grounding"}}
    assert native(NOVA_2, tools=[grounding, TOOL])["toolConfig"]["tools"][-1] == grounding
    with pytest.raises(UnsupportedParameterError, match="web_search"):
        build_body(bedrock_request(tools=[{"type": "web_search"}]))


@pytest.mark.parametrize("model", [NOVA_2, "us.amazon.nova-premier-v1:0"])
def test_web_search__model_with_grounding__amazons_own_tool(model: str) -> None:
    grounding = {"systemTool": {"name": "nova_grounding"}}
    body, warnings = checked(bedrock_request(model, web_search_options={"search_context_size": "medium"}))
    assert (body["toolConfig"], warnings) == ({"tools": [grounding]}, ())
    assert native(model, web_search_options={}, tools=[TOOL, grounding])["toolConfig"]["tools"][1:] == [grounding]
    assert native(model, web_search_options={}, tools=[TOOL], tool_choice="none")["toolConfig"]["tools"] == [grounding]
    place = {"type": "approximate", "approximate": {"country": "DE"}}
    assert warned(model, web_search_options={"user_location": place, "search_context_size": "high"}) == (
        "web_search_options.user_location: dropped, bedrock has no counterpart",
        "web_search_options.search_context_size: dropped, bedrock has no counterpart",
    )


@pytest.mark.parametrize("model", [CLAUDE, NOVA, LLAMA, GPT_OSS, OWN_PROFILE])
def test_web_search__model_without__refused(model: str) -> None:
    with pytest.raises(UnsupportedParameterError) as caught:
        build_body(bedrock_request(model, web_search_options={}))
    assert caught.value.parameter == "web_search_options"


def test_messages__names_of_who_speaks__dropped_and_named_once() -> None:
    named = [{**USER, "name": "Ann"}, {"role": "assistant", "content": "Hi", "name": "Bob"}, {**USER, "name": "Ann"}]
    assert warned(messages=named) == ("messages.name: dropped, bedrock has no counterpart",)
    assert not warned(messages=[USER, CALLED, {**RESULT, "name": "look"}], tools=[TOOL])


@pytest.mark.parametrize(("detail", "count"), [("high", 1), ("low", 1), ("auto", 0), (None, 0)])
def test_images__detail__named_where_it_asks_for_something(detail: str | None, count: int) -> None:
    image = {"type": "image_url", "image_url": {"url": PNG, "detail": detail}}
    warnings = warned(messages=[{"role": "user", "content": [image, image]}])
    assert warnings == ("messages.image_url.detail: dropped, bedrock has no counterpart",) * count


def test_messages__instructions_in_mid_conversation__in_their_place_and_marked() -> None:
    first = [{"role": "system", "content": "Be brief."}, USER, {"role": "assistant", "content": "Yes?"}]
    later = [USER, {"role": "developer", "content": "From now on in German."}]
    before, after = native(messages=[*first, USER]), native(messages=[*first, *later])
    marked = {"text": "<system-instruction>\nFrom now on in German.\n</system-instruction>"}
    assert before["system"] == after["system"] == [{"text": "Be brief."}]
    assert after["messages"] == [*before["messages"][:2], {"role": "user", "content": [{"text": "Hi"}, marked]}]


def test_messages__instruction_between_call_and_result__behind_the_result() -> None:
    reminder = {
        "role": "system",
        "content": [{"type": "text", "text": "Hurry.", "cache_control": {"type": "ephemeral"}}],
    }
    (_, _, (role, content)) = contents(USER, CALLED, reminder, RESULT, tools=[TOOL])
    assert role == "user"
    assert [next(iter(block)) for block in content] == ["toolResult", "text", "cachePoint"]


def test_cache_breakpoint__of_openais__a_cache_point() -> None:
    marked = {"type": "text", "text": "Long.", "prompt_cache_breakpoint": {"mode": "explicit"}}
    lasting = {"type": "text", "text": "Longer.", "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "30m"}}
    assert contents({"role": "user", "content": [marked, lasting]})[0][1] == [
        {"text": "Long."},
        {"cachePoint": {"type": "default"}},
        {"text": "Longer."},
        {"cachePoint": {"type": "default", "ttl": "1h"}},
    ]


def test_cache_control__marker__cache_point_behind_what_it_marks() -> None:
    marker = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    fields: dict[str, Any] = {
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": "Long.", **marker}]},
            {"role": "user", "content": [{"type": "text", "text": "one", **marker}, {"type": "text", "text": "two"}]},
        ],
        "tools": [{**TOOL, **marker}],
    }
    point = {"cachePoint": {"type": "default", "ttl": "1h"}}
    body = native(**fields)
    assert body["system"] == [{"text": "Long."}, point]
    assert body["messages"][0]["content"] == [{"text": "one"}, point, {"text": "two"}]
    assert body["toolConfig"]["tools"][-1] == point
    nova = native(NOVA, **fields)
    assert nova["system"][-1] == {"cachePoint": {"type": "default"}}
    assert len(nova["toolConfig"]["tools"]) == 1
    for model in (CLAUDE_3, LLAMA):
        assert "cachePoint" not in json.dumps(native(model, **fields))
        assert not warned(model, **fields)
    assert native(OWN_PROFILE, **fields)["system"][-1] == point


def test_cache_control__on_calls_and_results__cache_point_behind_them() -> None:
    marker = {"cache_control": {"type": "ephemeral"}}
    made = {**CALLED, "tool_calls": [{**CALL, **marker}]}
    point = {"cachePoint": {"type": "default"}}
    _, (_, assistant), (_, results) = contents(USER, made, {**RESULT, **marker}, tools=[TOOL])
    assert assistant[1:] == results[1:] == [point]
    assert "toolUse" in assistant[0]
    assert "toolResult" in results[0]


def signed(signature: str = "c2ln", form: str = "anthropic-claude-v1") -> list[dict[str, Any]]:
    return [
        {"type": "reasoning.text", "text": "Hm.", "signature": signature, "format": form},
        {"type": "reasoning.encrypted", "data": "RXRr+/==", "format": form},
    ]


def test_reasoning__signed_history__unmodified_and_in_order() -> None:
    message = {"role": "assistant", "content": "Yes.", "reasoning_content": "Hm.", "reasoning_details": signed()}
    assert contents(USER, message, USER)[1][1] == [
        {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "c2ln"}}},
        {"reasoningContent": {"redactedContent": b"RXRr+/=="}},
        {"text": "Yes."},
    ]
    body = json.loads(ADAPTER.build_request(bedrock_request(messages=[USER, message, USER]), KEYS).body)
    redacted = body["messages"][1]["content"][1]["reasoningContent"]["redactedContent"]
    assert base64.b64decode(redacted) == b"RXRr+/=="


def test_reasoning__unsigned_of_this_dialect__back_to_others_than_claude() -> None:
    detail = {"type": "reasoning.text", "text": "Hm.", "format": "amazon-bedrock-v1"}
    message = {"role": "assistant", "content": "Yes.", "reasoning_details": [detail]}
    thought = {"reasoningContent": {"reasoningText": {"text": "Hm."}}}
    assert contents(USER, message, USER, model=NOVA)[1][1] == [thought, {"text": "Yes."}]
    assert contents(USER, message, USER)[1][1] == [{"text": "Yes."}]


@pytest.mark.parametrize("model", [CLAUDE, NOVA, OWN_PROFILE])
@pytest.mark.parametrize("form", ["google-gemini-v1", "openai-responses-v1", "amazon-bedrock-v1", ""])
def test_reasoning__of_another_vendor_or_unsigned__left_out(model: str, form: str) -> None:
    if model == NOVA and form == "amazon-bedrock-v1":
        form = "anthropic-claude-v1"
    for more in ({"reasoning_details": signed(form=form)}, {"reasoning_content": "Hm."}):
        message = {"role": "assistant", "content": "Yes.", **more}
        assert contents(USER, message, USER, model=model)[1][1] == [{"text": "Yes."}]


@pytest.mark.parametrize(
    ("model", "fields", "expected"),
    [
        (CLAUDE, {"reasoning_effort": "low"}, {"thinking": enabled(4096)}),
        (CLAUDE, {"thinking": enabled(2000)}, {"thinking": enabled(2000)}),
        (CLAUDE, {"thinking": enabled(7)}, {"thinking": enabled(1024)}),
        (CLAUDE, {"thinking": {"type": "adaptive"}}, {"thinking": enabled(8192)}),
        (CLAUDE, {"thinking": {"type": "disabled"}}, {"thinking": {"type": "disabled"}}),
        (CLAUDE, {"reasoning_effort": "none"}, {"thinking": {"type": "disabled"}}),
        (CLAUDE_3, {"thinking": {"type": "disabled"}}, {}),
        (OPUS_4_6, {"thinking": enabled(2000)}, {"thinking": enabled(2000)}),
        (SONNET_5, {"thinking": SUMMARIZED}, {"thinking": SUMMARIZED}),
        (NOVA_2, {"reasoning_effort": "high"}, {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "high"}}),
        (NOVA_2, {"reasoning_effort": "none"}, {"reasoningConfig": {"type": "disabled"}}),
        (NOVA_2, {"reasoning_effort": "max"}, {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "high"}}),
        (NOVA_2, {"thinking": {"type": "between_tools"}}, {"reasoningConfig": {"type": "disabled"}}),
        (GPT_OSS, {"reasoning_effort": "minimal"}, {"reasoning_effort": "low"}),
        (GPT_OSS, {"reasoning_effort": "max"}, {"reasoning_effort": "high"}),
        ("us.openai.gpt-5.5", {"reasoning_effort": "xhigh"}, {"reasoning_effort": "xhigh"}),
        ("us.openai.gpt-5.5", {"reasoning_effort": "none"}, {"reasoning_effort": "none"}),
        ("deepseek.v3-v1:0", {"reasoning_effort": "xhigh"}, {"reasoning_effort": "high"}),
        ("deepseek.v3-v1:0", {"reasoning_effort": "none"}, {}),
        ("zai.glm-5", {"reasoning_effort": "medium"}, {"reasoning_config": "medium"}),
        ("qwen.qwen3-235b-a22b-2507-v1:0", {"reasoning_effort": "medium"}, {"reasoning_config": "high"}),
        (OWN_PROFILE, {"thinking": enabled(7)}, {"thinking": enabled(7)}),
        (CLAUDE, {"reasoning_effort": "max"}, {"thinking": enabled(65536)}),
        (CLAUDE, {"thinking": {"type": "between_tools"}}, {"thinking": {"type": "disabled"}}),
        (CLAUDE, {"thinking": {"type": "of_tomorrow", "x": 1}}, {"thinking": {"type": "of_tomorrow", "x": 1}}),
        (CLAUDE, {"thinking": enabled(2000), "max_tokens": 2001}, {"thinking": enabled(2000)}),
        (CLAUDE, {"reasoning_effort": "low", "max_tokens": 5120}, {"thinking": enabled(4096)}),
    ],
)
def test_thinking__each_model__in_its_own_words(model: str, fields: dict[str, Any], expected: dict[str, Any]) -> None:
    body, warnings = checked(bedrock_request(model, **fields))
    assert body.get("additionalModelRequestFields", {}) == expected
    assert not warnings


@pytest.mark.parametrize(
    ("model", "fields", "effort"),
    [
        (OPUS_4_6, {"reasoning_effort": "medium"}, "medium"),
        (OPUS_4_6, {"reasoning_effort": "xhigh"}, "max"),
        (SONNET_5, {"reasoning_effort": "minimal"}, "low"),
        (SONNET_5, {"reasoning_effort": "xhigh"}, "xhigh"),
        (SONNET_5, {"reasoning_effort": "max"}, "max"),
        (OPUS_4_6, {"reasoning_effort": "max"}, "max"),
        (SONNET_5, {"thinking": enabled(20000)}, "high"),
    ],
)
def test_thinking__adaptive_claude__effort_instead_of_a_budget(model: str, fields: dict[str, Any], effort: str) -> None:
    body = native(model, **fields)
    assert body["additionalModelRequestFields"]["thinking"]["type"] == "adaptive"
    shown = body["additionalModelRequestFields"]["thinking"].get("display", "")
    assert shown == ("summarized" if model == SONNET_5 else "")
    assert body["outputConfig"] == {"effort": effort}


@pytest.mark.parametrize(
    ("model", "fields"),
    [
        (LLAMA, {"reasoning_effort": "high"}),
        (CLAUDE_3, {"thinking": enabled(2000)}),
        (CLAUDE, {"reasoning_effort": "high", "max_tokens": 500}),
        (CLAUDE, {"reasoning_effort": "high", "tools": [TOOL], "tool_choice": "required"}),
        (CLAUDE, {"reasoning_effort": "high", "tools": [TOOL], "messages": [USER, CALLED, RESULT]}),
        (OWN_PROFILE, {"reasoning_effort": "high"}),
        ("us.anthropic.claude-fable-5", {"reasoning_effort": "none"}),
        ("us.anthropic.claude-mythos-preview", {"thinking": {"type": "disabled"}}),
        ("us.anthropic.claude-opus-5-5", {"reasoning_effort": "none"}),
        ("us.deepseek.r1-v1:0", {"reasoning_effort": "high"}),
        ("qwen.qwen3-coder-30b-a3b-v1:0", {"reasoning_effort": "high"}),
        ("moonshot.kimi-k2-thinking", {"thinking": enabled(2000)}),
        (CLAUDE, {"reasoning_effort": "low", "max_tokens": 1200}),
    ],
)
def test_thinking__impossible_here__left_out_and_named(model: str, fields: dict[str, Any]) -> None:
    body, warnings = checked(bedrock_request(model, **fields))
    assert "additionalModelRequestFields" not in body
    assert len(warnings) == 1


@pytest.mark.parametrize("model", [GPT_OSS, "zai.glm-5", "qwen.qwen3-32b-v1:0"])
def test_thinking__off_at_a_model_that_always_thinks__its_lowest_level_and_named(model: str) -> None:
    body, warnings = checked(bedrock_request(model, reasoning_effort="none"))
    assert set(body["additionalModelRequestFields"].values()) == {"low"}
    assert "always thinks" in warnings[0]


@pytest.mark.parametrize("model", [NOVA_2, GPT_OSS])
def test_thinking__counts_and_display_at_a_model_of_levels__the_nearest_and_named(model: str) -> None:
    body, warnings = checked(bedrock_request(model, thinking={**enabled(9000), "display": "omitted"}))
    assert '"medium"' in json.dumps(body["additionalModelRequestFields"])
    assert [warning.split(":")[0] for warning in warnings] == ["thinking.budget_tokens", "thinking.display"]


def test_cache_control__on_a_part_of_a_result__cache_point_behind_the_result() -> None:
    part = {"type": "text", "text": "found", "cache_control": {"type": "ephemeral"}}
    _, _, (_, content) = contents(USER, CALLED, {**RESULT, "content": [part]}, tools=[TOOL])
    assert [next(iter(block)) for block in content] == ["toolResult", "cachePoint"]


def test_response_format__json_object_with_a_schema__named() -> None:
    wish = {"type": "json_object", "json_schema": {"type": "object"}}
    assert [warning.split(":")[0] for warning in warned(response_format=wish)] == [
        "response_format",
        "response_format.json_schema",
    ]


@pytest.mark.parametrize("model", [NOVA_2, GPT_OSS, LLAMA])
def test_thinking__type_of_tomorrow_at_another_than_claude__refused_by_name(model: str) -> None:
    with pytest.raises(UnsupportedParameterError) as caught:
        build_body(bedrock_request(model, thinking={"type": "of_tomorrow"}))
    assert caught.value.parameter == "thinking"


@pytest.mark.parametrize(
    "fields",
    [{"reasoning_effort": "high", "max_tokens": 3000}, {"thinking": enabled(9000), "max_completion_tokens": 3000}],
)
def test_thinking__budget_beyond_the_limit__leaves_a_fifth_for_the_answer(fields: dict[str, Any]) -> None:
    body, warnings = checked(bedrock_request(**fields))
    assert body["additionalModelRequestFields"] == {"thinking": enabled(2400)}
    assert "lowered to 2400" in warnings[0]


def test_thinking__off_at_a_model_that_thinks_between_tools__its_own_word() -> None:
    body = native("us.anthropic.claude-sonnet-5-5", reasoning_effort="none")
    assert body["additionalModelRequestFields"] == {"thinking": {"type": "between_tools"}}


def test_tool_choice__forced_at_a_model_that_cannot__refused() -> None:
    with pytest.raises(UnsupportedParameterError, match="tool_choice"):
        build_body(bedrock_request("us.anthropic.claude-opus-5-5", tools=[TOOL], tool_choice="required"))


def test_messages__parts_in_converses_own_words__passed_on() -> None:
    guarded = {"guardContent": {"text": {"text": "Tokyo", "qualifiers": ["grounding_source"]}}}
    point = {"cachePoint": {"type": "default"}}
    found = {"searchResult": {"source": "s", "title": "t", "content": [{"text": "x"}]}}

    def part(block: dict[str, Any]) -> dict[str, Any]:
        return {"type": next(iter(block)), **block}

    parts = [part(guarded), part(point), {"type": "text", "text": "?"}]
    assert contents({"role": "user", "content": parts}) == [("user", [guarded, point, {"text": "?"}])]
    answered = {**RESULT, "content": [part({"json": {"a": 1}}), part(found)]}
    _, _, (_, (result,)) = contents(USER, CALLED, answered, tools=[TOOL])
    assert result["toolResult"]["content"] == [{"json": {"a": 1}}, found]


def test_documents__in_converses_own_words__with_their_citations() -> None:
    """What a Claude cites comes back as `citationsContent`; nothing else turns that on."""
    document = {"format": "txt", "name": "N", "source": {"text": "x"}, "context": "c", "citations": {"enabled": True}}
    part = {"type": "document", "document": document}
    expected = [{"document": document}, {"text": "N"}]
    assert contents({"role": "user", "content": [part]}) == [("user", expected)]
    with pytest.raises(UnsupportedParameterError, match="document"):
        coheres = {"type": "document", "document": {"data": {"text": "x"}}}
        build_body(bedrock_request(messages=[{"role": "user", "content": [coheres]}]))


def test_thinking__beside_limits_and_sampling__within_what_the_models_allow() -> None:
    fields: dict[str, Any] = {"reasoning_effort": "medium", "max_tokens": 5000, "temperature": 0.2, "top_p": 0.97}
    body, warnings = checked(bedrock_request(CLAUDE, **fields))
    assert body["additionalModelRequestFields"]["thinking"]["budget_tokens"] == 4000
    assert body["inferenceConfig"] == {"maxTokens": 5000, "topP": 0.97}
    assert len(warnings) == 2
    nova, warnings = checked(bedrock_request(NOVA_2, reasoning_effort="high", max_tokens=500))
    assert nova["additionalModelRequestFields"]["reasoningConfig"]["maxReasoningEffort"] == "medium"
    assert len(warnings) == 1
    history = {"role": "assistant", "reasoning_details": signed(), "tool_calls": [CALL]}
    kept = native(reasoning_effort="low", tools=[TOOL], messages=[USER, history, RESULT])
    assert kept["additionalModelRequestFields"]["thinking"]["type"] == "enabled"


def test_sampling__what_a_claude_refuses__left_out_and_named() -> None:
    thinks: dict[str, Any] = {"reasoning_effort": "low", "top_p": 0.5, "top_k": 5}
    assert "inferenceConfig" not in native(**thinks)
    assert len(warned(**thinks)) == 2
    both: dict[str, Any] = {"temperature": 0.2, "top_p": 0.5}
    assert native(**both)["inferenceConfig"] == {"temperature": 0.2}
    assert len(warned(**both)) == 1
    assert "inferenceConfig" not in native(SONNET_5, **both)
    assert len(warned(SONNET_5, **both)) == 2
    assert native(NOVA, **both)["inferenceConfig"] == {"temperature": 0.2, "topP": 0.5}
    assert native(NOVA, temperature=1.7)["inferenceConfig"] == {"temperature": 1}
    assert len(warned(NOVA, temperature=1.7)) == 1
    assert native(stop=["\n", "END"])["inferenceConfig"] == {"stopSequences": ["END"]}
    assert native(LLAMA, stop="\n")["inferenceConfig"] == {"stopSequences": ["\n"]}


def test_response_format__schema__native_and_closed() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "object", "properties": {}}}}}
    wish = {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema, "description": "What to say"}}
    form = native(response_format=wish)["outputConfig"]["textFormat"]
    described = form["structure"]["jsonSchema"]
    assert (form["type"], described["name"], described["description"]) == ("json_schema", "reply", "What to say")
    sent = json.loads(described["schema"])
    assert sent["additionalProperties"] is False
    assert sent["properties"]["a"]["items"]["additionalProperties"] is False
    assert "additionalProperties" not in schema


def test_response_format__json_object__an_instruction_and_named() -> None:
    body, warnings = checked(bedrock_request(response_format={"type": "json_object"}))
    assert "JSON" in body["system"][-1]["text"]
    assert [warning.split(":")[0] for warning in warnings] == ["response_format"]


def test_native_fields__under_their_own_names__passed_on() -> None:
    fields: dict[str, Any] = {
        "guardrailConfig": {"guardrailIdentifier": "abc", "guardrailVersion": "1"},
        "performanceConfig": {"latency": "optimized"},
        "requestMetadata": {"team": "blue"},
        "promptVariables": {"name": {"text": "x"}},
        "additionalModelResponseFieldPaths": ["/stop_sequence"],
        "serviceTier": {"type": "flex"},
    }
    more: dict[str, Any] = {
        "inferenceConfig": {"topP": 0.5},
        "outputConfig": {"effort": "low"},
        "additionalModelRequestFields": {"thinking": {"type": "disabled"}, "x": 1},
        "anthropic_beta": ["context-1m-2025-08-07"],
        "top_k": 5,
    }
    body, warnings = checked(bedrock_request(CLAUDE, max_tokens=9, **fields, **more))
    assert {name: body[name] for name in fields} == fields
    assert body["inferenceConfig"] == {"maxTokens": 9, "topP": 0.5}
    assert body["outputConfig"] == {"effort": "low"}
    own = {"anthropic_beta": ["context-1m-2025-08-07"], "top_k": 5, "x": 1, "thinking": {"type": "disabled"}}
    assert body["additionalModelRequestFields"] == own
    assert not warnings
    assert native(NOVA, top_k=5)["additionalModelRequestFields"] == {"inferenceConfig": {"topK": 5}}
    assert native(service_tier="priority")["serviceTier"] == {"type": "priority"}
    assert not warned(service_tier="auto")


@pytest.mark.parametrize(
    "fields",
    [{"n": 2}, {"modalities": ["text", "audio"]}, {"audio": {"voice": "x"}}],
)
def test_parameters__of_another_kind_of_answer__refused(fields: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedParameterError) as caught:
        build_body(bedrock_request(**fields))
    assert caught.value.parameter in (*fields, "modalities")


def test_parameters__without_counterpart__each_named() -> None:
    fields: dict[str, Any] = {
        "user": "u",
        "metadata": {"a": "b"},
        "store": True,
        "seed": 7,
        "logprobs": True,
        "frequency_penalty": 1,
    }
    assert [warning.split(":")[0] for warning in warned(**fields)] == list(fields)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def test_messages__ids_of_calls_used_again__distinct_and_answered() -> None:
    def looped(call_id: str) -> list[dict[str, Any]]:
        call = {"id": call_id, "type": "function", "function": {"name": "look", "arguments": "{}"}}
        result = {"role": "tool", "tool_call_id": call_id, "content": "ok"}
        return [{"role": "assistant", "content": None, "tool_calls": [call]}, result]

    turns = [{"role": "user", "content": "hi"}, *looped("call_0"), *looped("call_0"), *looped("x" * 64), *looped("")]
    messages = native(CLAUDE, messages=[*turns, *looped("x" * 64)], tools=[TOOL])["messages"]
    called = [message["content"][0]["toolUse"]["toolUseId"] for message in messages[1::2]]
    assert [message["content"][0]["toolResult"]["toolUseId"] for message in messages[2::2]] == called
    assert len(set(called)) == 5
    assert max(len(call_id) for call_id in called) <= 64


def test_messages__thinking_and_nothing_behind_it__left_out() -> None:
    details = [{"type": "reasoning.text", "text": "hm", "signature": "s", "format": "anthropic-claude-v1", "index": 0}]
    user = {"role": "user", "content": "hi"}
    thought = {"role": "assistant", "content": "", "reasoning_details": details}
    assert [message["role"] for message in native(CLAUDE, messages=[user, thought, user])["messages"]] == ["user"]


def test_result__with_sound__refused() -> None:
    sound = {"type": "input_audio", "input_audio": {"format": "wav", "data": "UklGRg=="}}
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    turns = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": [sound]},
    ]
    with pytest.raises(UnsupportedParameterError, match="sound"):
        native(NOVA, messages=turns, tools=[TOOL])


def test_tool__schema_without_a_type__of_an_object() -> None:
    tool = {"type": "function", "function": {"name": "look", "parameters": {"properties": {"at": {}}}}}
    made = native(CLAUDE, tools=[tool])["toolConfig"]["tools"][0]["toolSpec"]
    assert made["inputSchema"]["json"] == {"type": "object", "properties": {"at": {}}}


def test_stop__empty__asks_for_nothing() -> None:
    assert "inferenceConfig" not in native(NOVA, stop="")


PARTS = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, st.text(max_size=12)),
    st.just({"type": "image_url", "image_url": {"url": PNG}}),
    st.builds(lambda name: {"type": "file", "file": {"filename": name, "file_data": PDF}}, st.text(max_size=12)),
)
TURNS = st.one_of(
    st.builds(lambda parts: {"role": "user", "content": parts}, st.lists(PARTS, max_size=3)),
    st.builds(lambda text: {"role": "assistant", "content": text}, st.text(max_size=12)),
    st.builds(
        lambda call_id, arguments: {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": call_id, "function": {"name": "look", "arguments": json.dumps(arguments)}}],
        },
        st.text(max_size=80),
        st.dictionaries(st.text(max_size=5), JSON_VALUES, max_size=3),
    ),
    st.builds(
        lambda call_id, text: {"role": "tool", "tool_call_id": call_id, "content": text},
        st.text(max_size=80),
        st.text(max_size=12),
    ),
)


@settings(max_examples=150, deadline=None)
@given(turns=st.lists(TURNS, min_size=1, max_size=6), model=st.sampled_from([CLAUDE, NOVA, LLAMA, OWN_PROFILE]))
def test_messages__anything__valid_and_by_the_dialects_rules(turns: list[dict[str, Any]], model: str) -> None:
    body = native(model, messages=turns, tools=[TOOL])
    messages = body["messages"]
    assert messages[0]["role"] == "user"
    assert all(before["role"] != after["role"] for before, after in pairwise(messages))
    names = []
    for message in messages:
        assert message["content"]
        for block in message["content"]:
            assert "text" not in block or block["text"].strip()
            names += [block["document"]["name"]] if "document" in block else []
        if any("document" in block for block in message["content"]):
            assert any("text" in block for block in message["content"])
    assert len(set(names)) == len(names)
    json.loads(ADAPTER.build_request(bedrock_request(model, messages=turns, tools=[TOOL]), KEYS).body)
