"""Tests what the fakes of Gemini refuse, as the official SDK sees it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from google.genai import Client, errors, types
from google.oauth2.credentials import Credentials as Token

from tests.fakes.dialects.google import FAKE, VERTEX_FAKE, GoogleFake
from tests.fakes.dialects.server import DialectServer, answer_with
from tests.fakes.dialects.story import Story

Json = dict[str, Any]
SIGNED = "c2lnbmVk"
OBJECT: Json = {"type": "OBJECT", "properties": {"city": {"type": "STRING"}}}
NEWER, OLDER = "gemini-3-flash-preview", "gemini-2.5-flash"


def turn(role: str, *parts: Json) -> Json:
    return {"role": role, "parts": list(parts)}


def function(name: str = "weather", **fields: Any) -> Json:
    return {"functionDeclarations": [{"name": name, **fields}]}


USER = turn("user", {"text": "Hello"})
CALL: Json = {"functionCall": {"name": "weather", "args": {}}, "thoughtSignature": SIGNED}
RESPONSE: Json = {"functionResponse": {"name": "weather", "response": {"result": "18"}}}
LOOP = [USER, turn("model", CALL), turn("user", RESPONSE)]
SEARCH: Json = {"googleSearch": {}}
JSON: Json = {"responseMimeType": "application/json"}
ANY: Json = {"mode": "ANY", "allowedFunctionNames": ["weather"]}
# Each request is one that Google takes.
GOOD: list[Json] = [
    {},
    {"contents": LOOP, "tools": [function(parameters=OBJECT)]},
    {"contents": [USER, turn("model", CALL, {**CALL, "thoughtSignature": SIGNED}), turn("user", RESPONSE, RESPONSE)]},
    {"contents": [USER, turn("model", {"text": "Hi"}), USER], "systemInstruction": turn("user", {"text": "Be brief."})},
    {"tools": [function(parametersJsonSchema={"type": "object", "additionalProperties": False})]},
    {"generationConfig": {**JSON, "responseJsonSchema": {"type": "object"}}, "tools": [function()]},
    {"generationConfig": {"thinkingConfig": {"thinkingLevel": "LOW"}, "maxOutputTokens": 7, "topK": 3}},
    {"model": OLDER, "generationConfig": {"thinkingConfig": {"thinkingBudget": 512}}, "tools": [SEARCH]},
    {"tools": [function()], "toolConfig": {"functionCallingConfig": ANY}},
]  # fmt: skip
# By rule: what is changed in a request that Google takes, and a part of the error.
REFUSED: dict[str, list[tuple[Json, str]]] = {
    "unknown field": [
        ({"top_k": 1}, 'Unknown name "topK": Cannot find field.'),
        ({"generationConfig": {"reasoningEffort": "low"}}, "\"reasoningEffort\" at 'generation_config'"),
        ({"generationConfig": {"thinkingConfig": {"effort": "low"}}}, "at 'generation_config.thinking_config'"),
        ({"contents": [turn("user", {"text": "a", "type": "text"})]}, "\"type\" at 'contents[0].parts[0]'"),
        ({"contents": [{**USER, "name": "ada"}]}, "\"name\" at 'contents[0]'"),
        ({"tools": [function(strict=True)]}, "\"strict\" at 'tools[0].function_declarations[0]'"),
        ({"tools": [function(parameters={**OBJECT, "additionalProperties": False})]},
         "\"additionalProperties\" at 'tools[0].function_declarations[0].parameters'"),
        ({"tools": [function(parameters={**OBJECT, "properties": {"a": {"type": "STRING", "const": "b"}}})]},
         "\"const\" at 'tools[0].function_declarations[0].parameters.properties[0].value'"),
        ({"generationConfig": {**JSON, "responseSchema": {**OBJECT, "$schema": "x"}}}, '"$schema" at'),
    ],
    "no contents": [({"contents": []}, "contents is not specified")],
    "role": [({"contents": [turn("assistant", {"text": "a"})]}, "Please use a valid role: user, model.")],
    "no parts": [({"contents": [turn("user")]}, "contents[0].parts: contents.parts must not be empty")],
    "part without data": [({"contents": [turn("user", {"thought": True})]}, "required oneof field 'data'")],
    "part with two kinds of data": [
        ({"contents": [turn("user", {"text": "a", "inlineData": {"mimeType": "image/png", "data": "aaaa"}})]},
         "oneof field 'data' is already set. Cannot set 'inlineData'")
    ],
    "responses without calls": [({"contents": [turn("user", RESPONSE)]}, "immediately after a function call turn")],
    "unequal number of responses": [
        ({"contents": [*LOOP[:2], turn("user", RESPONSE, RESPONSE)]}, "is equal to the number of function call parts"),
        ({"contents": [*LOOP[:2], USER]}, "is equal to the number of function call parts"),
    ],
    "place of a call": [
        ({"contents": LOOP[1:]}, "immediately after a user turn or after a function response turn"),
        ({"contents": [USER, turn("model", {"text": "a"}), *LOOP[1:]]}, "immediately after a user turn"),
        ({"contents": [USER, turn("user", CALL), turn("user", RESPONSE)]}, "immediately after a user turn"),
    ],
    "call without signature": [
        ({"contents": [USER, turn("model", {"functionCall": {"name": "weather"}}), turn("user", RESPONSE)]},
         "missing a thought_signature in functionCall parts")
    ],
    "signature that is no base64": [
        ({"contents": [USER, turn("model", {"text": "a", "thoughtSignature": "a"}), USER]}, "Base64 decoding failed")
    ],
    "parameters that are no object": [
        ({"tools": [function(parameters={"type": "STRING"})]}, "should be of type OBJECT")
    ],
    "name of a function": [
        ({"tools": [function("1st")]}, "Invalid function name. Must start with a letter or an underscore"),
        ({"tools": [function("n" * 129)]}, "with a maximum length of 128"),
    ],
    "repeated function": [({"tools": [function(), function()]}, "Duplicate function declaration found: weather")],
    "two kinds of parameters": [
        ({"tools": [function(parameters=OBJECT, parametersJsonSchema={"type": "object"})]}, "mutually exclusive")
    ],
    "list of types": [
        ({"tools": [function(parameters={**OBJECT, "properties": {"a": {"type": ["STRING", "NULL"]}}})]},
         "Proto field is not repeating, cannot start list")
    ],
    "array without items": [
        ({"tools": [function(parameters={**OBJECT, "properties": {"a": {"type": "ARRAY"}}})]},
         "parameters.properties[a].items: missing field")
    ],
    "answer in JSON with functions": [
        ({"model": OLDER, "tools": [function()], "generationConfig": JSON}, "'application/json' is unsupported")
    ],
    "schema without its type": [({"generationConfig": {"responseSchema": OBJECT}}, "only allowed when response_mime_")],
    "built-in tool with functions": [
        ({"model": OLDER, "tools": [SEARCH, function()]}, "Tool use with function calling is unsupported")
    ],
    "names of functions without their mode": [
        ({"tools": [function()],
          "toolConfig": {"functionCallingConfig": {"mode": "AUTO", "allowedFunctionNames": ["weather"]}}},
         "only allowed when mode is ANY")
    ],
    "budget and level": [
        ({"generationConfig": {"thinkingConfig": {"thinkingBudget": 512, "thinkingLevel": "LOW"}}}, "only set only one")
    ],
    "level at an older model": [
        ({"model": OLDER, "generationConfig": {"thinkingConfig": {"thinkingLevel": "LOW"}}}, "Thinking level is not")
    ],
    "number of logprobs alone": [
        ({"generationConfig": {"logprobs": 3}}, "only allowed when response_logprobs is true")
    ],
}  # fmt: skip
REFUSED_AT_GEMINI: dict[str, list[tuple[Json, str]]] = {
    "built-in tool that is not enabled": [({"tools": [SEARCH, function()]}, "include_server_side_tool_invocations")],
    "unknown field": [({"tools": [{"enterpriseWebSearch": {}}]}, "\"enterpriseWebSearch\" at 'tools[0]'")],
}
REFUSED_AT_VERTEX: dict[str, list[tuple[Json, str]]] = {
    "id of a call": [
        (
            {
                "model": OLDER,
                "contents": [
                    USER,
                    turn("model", {"functionCall": {"id": "c", "name": "weather"}}),
                    turn("user", RESPONSE),
                ],
            },
            "Unknown name \"id\" at 'contents[1].parts[0].function_call'",
        )
    ],
    "unknown field": [({"toolConfig": {"includeServerSideToolInvocations": True}}, "at 'tool_config'")],
}
CASES = [
    (fake, rule, change, words)
    for fake, more in ((FAKE, REFUSED_AT_GEMINI), (VERTEX_FAKE, REFUSED_AT_VERTEX))
    for rule, cases in [*REFUSED.items(), *more.items()]
    for change, words in cases
]


@pytest.fixture(scope="module")
def clients(server: DialectServer) -> Iterator[dict[str, Client]]:
    with sdk(server, FAKE) as gemini, sdk(server, VERTEX_FAKE) as vertex:
        yield {"google": gemini, "google_vertex": vertex}


def sdk(server: DialectServer, fake: GoogleFake) -> Client:
    server.play(fake.provider, answer_with(fake, Story(text="ok")))
    access = fake.credentials(server.base_url(fake.provider))
    options = types.HttpOptions(base_url=access.base_url, retry_options=types.HttpRetryOptions(attempts=1))
    if fake is FAKE:
        return Client(api_key=access.secret, http_options=options)
    return Client(
        vertexai=True,
        project=access.extra["project"],
        location=access.extra["location"],
        credentials=Token(token=access.secret),  # type: ignore[no-untyped-call]  # google-auth leaves it unannotated
        http_options=options,
    )


def ask(client: Client, change: Json) -> types.GenerateContentResponse:
    """Sends the body as it is: the SDK would not let all of them pass."""
    body = {"contents": [USER], **change}
    options = types.HttpOptions(extra_body={name: value for name, value in body.items() if name != "model"})
    config = types.GenerateContentConfig(http_options=options)
    return client.models.generate_content(model=change.get("model", NEWER), contents="replaced", config=config)


@pytest.mark.parametrize("provider", ["google", "google_vertex"])
@pytest.mark.parametrize("change", GOOD, ids=str)
def test_request__that_the_vendor_takes__answered(clients: dict[str, Client], provider: str, change: Json) -> None:
    assert ask(clients[provider], change).text == "ok"


@pytest.mark.parametrize(
    ("fake", "rule", "change", "words"),
    CASES,
    ids=[f"{fake.provider}-{rule}-{words}" for fake, rule, _, words in CASES],
)
def test_request__that_the_vendor_refuses__raised_by_the_sdk_in_its_words(
    clients: dict[str, Client], fake: GoogleFake, rule: str, change: Json, words: str
) -> None:
    with pytest.raises(errors.ClientError) as raised:
        ask(clients[fake.provider], change)
    assert words in str(raised.value.message)
    assert (raised.value.code, raised.value.status) == (400, "INVALID_ARGUMENT")
    assert any(one.name == rule for one in fake.rules.rules)
