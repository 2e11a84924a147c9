"""What the surface makes of a request, and what it says of a wrong one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.errors import NotFoundError, ValidationError
from gateway.protocol.wire import decode_request
from gateway.surfaces.gemini.address import surface_at, surface_at_url
from gateway.surfaces.gemini.foreign import opened, sealed
from integrations.providers.google.messages import UNSIGNED
from prompts.content.messages import PromptMessage
from tests.gateway.surfaces.gemini.clients import REQUEST_ID, SURFACE, ask, chat, failed, messages_of, untranslatable

PNG = {"mimeType": "image/png", "data": "aW1hZ2U="}
CALL = {"functionCall": {"name": "read", "args": {"path": "ä"}}}
RESULT = {"functionResponse": {"name": "read", "response": {"output": "text"}}}
CLAUDES = [{"type": "reasoning.text", "text": "Hm.", "signature": "c2ln", "format": "anthropic-claude-v1", "index": 0}]


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "parts": list(parts)}


def model(*parts: Any) -> dict[str, Any]:
    return {"role": "model", "parts": list(parts)}


def test_plain_request__is_the_same_as_one_that_is_read_part_by_part() -> None:
    config = {"maxOutputTokens": 5, "temperature": 0.5, "topP": 0.5, "topK": 3}
    fields = {"systemInstruction": {"parts": [{"text": "Be brief."}]}, "generationConfig": config}
    plain, read = SURFACE.read(ask(**fields)), SURFACE.read(ask(**fields, labels={}))

    assert plain.is_plain
    assert not read.is_plain
    assert json.loads(plain.body) == {name: one for name, one in json.loads(read.body).items() if name != "labels"}
    assert json.loads(plain.body) == {
        "model": "sandbox/echo",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}],
        "max_tokens": 5,
        "temperature": 0.5,
        "top_p": 0.5,
        "top_k": 3,
    }


def test_fields__in_snake_case__are_the_same() -> None:
    camel = chat(
        systemInstruction={"parts": [{"text": "Be brief."}]},
        generationConfig={"maxOutputTokens": 5, "responseMimeType": "application/json", "stopSequences": ["."]},
        toolConfig={"functionCallingConfig": {"mode": "ANY"}},
        tools=[{"functionDeclarations": [{"name": "f", "parametersJsonSchema": {"type": "object"}}]}],
    )
    snake = chat(
        system_instruction={"parts": {"text": "Be brief."}},
        generation_config={"max_output_tokens": 5, "response_mime_type": "application/json", "stop_sequences": ["."]},
        tool_config={"function_calling_config": {"mode": "any"}},
        tools={"function_declarations": {"name": "f", "parameters_json_schema": {"type": "object"}}},
    )

    assert snake == camel
    assert camel["tool_choice"] == "required"
    assert camel["response_format"] == {"type": "json_object"}


def test_calls_and_results__without_ids__belong_together() -> None:
    second = {"functionResponse": {"name": "list", "response": {"files": []}}}
    made = messages_of(user({"text": "Go"}), model(CALL, {"functionCall": {"name": "list"}}), user(second, RESULT))

    _, called, listed, read = made
    ids = [call["id"] for call in called["tool_calls"]]
    assert [call["function"]["arguments"] for call in called["tool_calls"]] == ['{"path":"ä"}', "{}"]
    assert called["content"] is None
    assert (listed["tool_call_id"], listed["content"]) == (ids[1], '{"files":[]}')
    assert (read["tool_call_id"], read["content"]) == (ids[0], "text")


def test_result__that_is_an_error_or_has_a_picture__says_so() -> None:
    broken = {"functionResponse": {"id": "c1", "name": "read", "response": {"error": "gone"}}}
    drawn = {"functionResponse": {"id": "c2", "name": "draw", "response": {}, "parts": [{"inlineData": PNG}]}}
    calls = [{"functionCall": {"id": name, "name": "read"}} for name in ("c1", "c2")]
    *_, error, picture = messages_of(user({"text": "Go"}), model(*calls), user(broken, drawn))

    assert (error["content"], error["is_error"]) == ("gone", True)
    assert picture["content"] == [{"type": "image_url", "image_url": {"url": "data:image/png;base64,aW1hZ2U="}}]


@pytest.mark.parametrize(
    ("part", "made"),
    [
        ({"inlineData": PNG}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,aW1hZ2U="}}),
        (
            {"inline_data": {"mime_type": "audio/mpeg", "data": "YQ=="}},
            {"type": "input_audio", "input_audio": {"data": "YQ==", "format": "mp3"}},
        ),
        (
            {"fileData": {"mimeType": "application/pdf", "fileUri": "https://example.org/a.pdf"}},
            {"type": "document_url", "document_url": {"url": "https://example.org/a.pdf"}},
        ),
        (
            {"inlineData": PNG, "mediaResolution": {"level": "MEDIA_RESOLUTION_LOW"}},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aW1hZ2U=", "detail": "low"}},
        ),
    ],
    ids=["image", "sound", "address", "resolution"],
)
def test_file__is_a_content_part(part: dict[str, Any], made: dict[str, Any]) -> None:
    (message,) = messages_of(user({"text": "Look"}, part))

    assert message["content"] == [{"type": "text", "text": "Look"}, made]


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"contents": [user({"fileData": {"fileUri": "gs://bucket/a.pdf"}})]}, "contents[0].parts[0].fileData"),
        (
            {"contents": [user({"inlineData": PNG, "videoMetadata": {"fps": 1}})]},
            "contents[0].parts[0].videoMetadata",
        ),
        (
            {"contents": [user({"text": "a"}), model({"executableCode": {"code": "1"}})]},
            "contents[1].parts[0].executableCode",
        ),
        ({"tools": [{"codeExecution": {}}]}, "tools[0].codeExecution"),
        ({"cachedContent": "cachedContents/1"}, "cachedContent"),
        ({"generationConfig": {"responseMimeType": "text/x.enum"}}, "generationConfig.responseMimeType"),
        ({"somethingNew": 1}, "somethingNew"),
    ],
)
def test_request__that_only_google_can_serve__names_the_field(fields: dict[str, Any], name: str) -> None:
    (problem,) = untranslatable(**fields)

    assert problem.partition(": ")[0] == name
    decode_request(SURFACE.read(ask(**fields)).body)


def test_search__is_the_vendors_own() -> None:
    read = SURFACE.read(ask(tools=[{"googleSearch": {"excludeDomains": ["a.example"]}}]))

    assert json.loads(read.body)["web_search_options"] == {}
    assert not read.untranslatable
    assert read.warnings == ("tools[0].googleSearch.excludeDomains: dropped, only Google's search has it",)


def test_schema__in_googles_older_form__is_a_json_schema() -> None:
    schema = {
        "type": "OBJECT",
        "properties": {"tags": {"type": "ARRAY", "items": {"type": "STRING", "nullable": True}, "minItems": "1"}},
        "propertyOrdering": ["tags"],
    }
    made = chat(generationConfig={"responseMimeType": "application/json", "responseSchema": schema})

    assert made["response_format"]["json_schema"]["schema"] == {
        "type": "object",
        "properties": {"tags": {"type": "array", "items": {"type": ["string", "null"]}, "minItems": 1}},
    }


@pytest.mark.parametrize(
    ("settings", "made"),
    [
        ({"thinkingLevel": "HIGH"}, {"reasoning_effort": "high"}),
        ({"thinkingBudget": 2048}, {"thinking": {"type": "enabled", "budget_tokens": 2048}}),
        ({"thinkingBudget": 0}, {"thinking": {"type": "disabled"}}),
        ({"thinkingBudget": -1}, {"thinking": {"type": "adaptive"}}),
        ({"includeThoughts": True}, {}),
    ],
)
def test_thinking__is_an_effort_or_a_budget(settings: dict[str, Any], made: dict[str, Any]) -> None:
    found = chat(generationConfig={"thinkingConfig": settings})

    assert {name: found[name] for name in found if name in ("thinking", "reasoning_effort")} == made
    assert found["thinkingConfig"] == settings


@pytest.mark.parametrize(
    ("calling", "choice"),
    [
        ({"mode": "NONE"}, "none"),
        ({"mode": "ANY", "allowedFunctionNames": ["f"]}, {"type": "function", "function": {"name": "f"}}),
        (
            {"mode": "VALIDATED", "allowedFunctionNames": ["f"]},
            {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}]},
            },
        ),
    ],
)
def test_choice_of_functions__is_that_of_a_chat_completion(calling: dict[str, Any], choice: Any) -> None:
    tools = [{"functionDeclarations": [{"name": "f"}, {"name": "g"}]}]

    assert chat(tools=tools, toolConfig={"functionCallingConfig": calling})["tool_choice"] == choice


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"contents": None}, "contents: this field is required"),
        ({"contents": []}, "contents: at least one content is required"),
        ({"contents": "Hi"}, "contents: expected a list of objects"),
        ({"contents": [{"role": "boss", "parts": [{"text": "a"}]}]}, "contents[0].role: expected user or model"),
        ({"contents": [user({"text": 1})]}, "contents[0].parts[0].text: expected a string"),
        ({"contents": [user({"words": "a"})]}, "contents[0].parts[0]: expected one of text"),
        ({"contents": [user({"text": "a", "inlineData": PNG})]}, "contents[0].parts[0]: a part holds one of"),
        ({"contents": [user(CALL)]}, "contents[0].parts[0]: a functionCall stands in a content of the role model"),
        ({"contents": [model(RESULT)]}, "contents[0].parts[0]: a functionResponse stands in a content of the role"),
        ({"generationConfig": {"temperature": 3}}, "generationConfig.temperature: expected a number from 0 to 2"),
        ({"generationConfig": {"maxOutputTokens": 0}}, "generationConfig.maxOutputTokens: expected an integer"),
        ({"tools": [{"functionDeclarations": [{}]}]}, "tools[0].functionDeclarations[0].name: this field is required"),
    ],
)
def test_request__that_is_wrong__is_refused_by_the_clients_own_name(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as refused:
        SURFACE.read(ask(**fields))

    assert refused.value.message.startswith(message)
    error = failed(refused.value)["error"]
    assert (error["code"], error["status"]) == (400, "INVALID_ARGUMENT")
    assert error["details"][0]["metadata"]["request_id"] == REQUEST_ID


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"contents": "\xff"}', b"[" * 100_000])
def test_body__that_is_no_json_object__is_refused(body: bytes) -> None:
    with pytest.raises(ValidationError):
        SURFACE.read(body)


def test_seal__of_another_vendor__returns_to_it_and_never_to_google() -> None:
    seal = sealed(CLAUDES)
    content = model({"text": "Hm.", "thought": True}, {**CALL, "thoughtSignature": seal})
    body = ask(contents=[user({"text": "Go"}), content, user(RESULT)])

    _, called, _ = json.loads(SURFACE.read(body).body)["messages"]
    forwarded = json.loads(SURFACE.forwarded(body))["contents"][1]["parts"]

    assert called["reasoning_details"] == CLAUDES == opened(seal.replace("+", "-").replace("/", "_"), "x")
    assert called["reasoning_content"] == "Hm."
    assert forwarded[-1] == {**CALL, "thoughtSignature": UNSIGNED}


def test_seal__that_was_changed__is_refused() -> None:
    part = {**CALL, "thoughtSignature": sealed(CLAUDES)[:-8] + "AAAA!!"}

    with pytest.raises(ValidationError, match="this is not the value that the gateway gave"):
        SURFACE.read(ask(contents=[user({"text": "Go"}), model(part)]))


def test_prompt__stands_in_the_clients_own_body() -> None:
    messages: list[PromptMessage] = [
        {"role": "system", "content": "Be brief."},
        {"role": "assistant", "content": "Yes?"},
    ]
    made = json.loads(SURFACE.with_prompt(ask(system_instruction=None), messages))

    assert made["systemInstruction"] == {"parts": [{"text": "Be brief."}]}
    assert made["contents"] == [model({"text": "Yes?"}), user({"text": "Hello"})]
    assert "system_instruction" not in made


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/api/gateway/v1beta/models/gemini-2.5-pro:generateContent", "gemini-2.5-pro"),
        ("/api/gateway/v1/models/openai/gpt-5.5:generateContent", "openai/gpt-5.5"),
        ("/api/gateway/v1alpha/models/models/gemini-2.5-pro:generateContent", "gemini-2.5-pro"),
        ("/api/gateway/v1beta/models/ollama/llama3:8b:generateContent", "ollama/llama3:8b"),
        ("/api/gateway/v1beta/mistral/mistral-large-latest:generateContent", "mistral/mistral-large-latest"),
        ("/api/gateway/v1beta/openrouter/openai/gpt-5.5:streamGenerateContent", "openrouter/openai/gpt-5.5"),
        ("/api/gateway/v1beta1/publishers/google/models/gemini-2.5-pro:generateContent", "gemini-2.5-pro"),
        ("/api/gateway/v1beta1/publishers/openai/models/gpt-5.5:generateContent", "openai/gpt-5.5"),
    ],
)
def test_address__names_the_model(path: str, name: str) -> None:
    assert surface_at(path, "").model == name
    assert surface_at_url(path.replace("openai/", "openai%2F")).model == name


def test_address__of_a_stream__says_its_form() -> None:
    path = "/api/gateway/v1beta/models/m:streamGenerateContent"

    assert surface_at(path, "").as_array
    assert not surface_at(path, "alt=sse").as_array
    assert json.loads(surface_at(path, "alt=sse").read(ask()).body)["stream"] is True


def test_address__without_a_method_or_with_a_key__is_refused() -> None:
    with pytest.raises(NotFoundError):
        surface_at("/api/gateway/v1beta/models/m:explain", "")
    with pytest.raises(ValidationError, match="x-goog-api-key"):
        surface_at("/api/gateway/v1beta/models/m:generateContent", "key=svc_1")
