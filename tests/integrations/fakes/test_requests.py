"""Tests that every fake reads what its vendor's official SDK sends, and refuses what the vendor refuses."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest
from botocore.exceptions import ClientError
from google.genai import errors, types

from tests.fakes.dialects.bedrock import KEY_ID
from tests.fakes.dialects.registry import FAKES
from tests.fakes.dialects.server import DialectServer, answer_with
from tests.fakes.dialects.story import Call, ReadRequest, Story
from tests.integrations.fakes.sdks import HALLO, ask
from tests.tables.cases import stored, tabled

PNG, PDF = b"\x89PNG\r\n\x1a\n", b"%PDF-1.4\xff"
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}
FUNCTION: dict[str, Any] = {"name": "weather", "parameters": {"type": "object", "properties": {}}}
CALL = {"id": "aB3dE6gH9", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Köln"}'}}
USE: dict[str, Any] = {"toolUseId": "aB3dE6gH9", "name": "weather", "input": {"city": "Köln"}}
SPEC = {"toolSpec": {"name": "weather", "inputSchema": {"json": SCHEMA}}}
# What all of the requests below say.
READ: dict[str, Any] = {
    "system": "Be brief.",
    "turns": (("user", "Look"),),
    "tools": ("weather",),
    "calls": (Call("aB3dE6gH9", "weather", {"city": "Köln"}),),
    "results": (("aB3dE6gH9", "rain"),),
    "stop": ("END",),
    "max_tokens": 9,
}
SAMPLED: dict[str, Any] = {"temperature": 0.5, "top_p": 0.5}

ANTHROPICS: dict[str, Any] = stored(__file__, "ANTHROPICS")
BEDROCKS: dict[str, Any] = {
    "system": [{"text": "Be brief."}],
    "messages": [
        {
            "role": "user",
            "content": [
                {"text": "Look"},
                {"image": {"format": "png", "source": {"bytes": PNG}}},
                {"document": {"format": "pdf", "name": "Report 1", "source": {"bytes": PDF}}},
                {"image": {"format": "png", "source": {"s3Location": {"uri": "s3://bucket/a.png"}}}},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "c2ln"}}},
                {"toolUse": USE},
            ],
        },
        {"role": "user", "content": [{"toolResult": {"toolUseId": "aB3dE6gH9", "content": [{"text": "rain"}]}}]},
    ],
    "inferenceConfig": {"maxTokens": 9, "temperature": 0.5, "topP": 0.5, "stopSequences": ["END"]},
    "toolConfig": {"tools": [SPEC], "toolChoice": {"tool": {"name": "weather"}}},
    "outputConfig": {
        "textFormat": {
            "type": "json_schema",
            "structure": {"jsonSchema": {"schema": json.dumps(SCHEMA), "name": "reply"}},
        }
    },
}
ASKED = types.Content(
    role="user",
    parts=[
        types.Part(text="Look"),
        types.Part(inline_data=types.Blob(mime_type="image/png", data=PNG)),
        types.Part(file_data=types.FileData(mime_type="application/pdf", file_uri="gs://bucket/a.pdf")),
    ],
)
CALLED = types.FunctionCall(id="aB3dE6gH9", name="weather", args={"city": "Köln"})
ANSWERED = types.FunctionResponse(id="aB3dE6gH9", name="weather", response={"result": "rain"})
GOOGLES: dict[str, Any] = {
    "model": "gemini-3-flash-preview",
    "contents": [
        ASKED,
        types.Content(role="model", parts=[types.Part(function_call=CALLED, thought_signature=b"signed")]),
        types.Content(role="user", parts=[types.Part(function_response=ANSWERED)]),
    ],
    "config": {
        "system_instruction": "Be brief.",
        "tools": [{"function_declarations": [{"name": "weather", "parameters_json_schema": {"type": "object"}}]}],
        "tool_config": {"function_calling_config": {"mode": "ANY", "allowed_function_names": ["weather"]}},
        "automatic_function_calling": {"disable": True},
        "response_mime_type": "application/json",
        "response_json_schema": SCHEMA,
        "max_output_tokens": 9,
        "temperature": 0.5,
        "top_p": 0.5,
        "stop_sequences": ["END"],
    },
}
COHERES: dict[str, Any] = stored(__file__, "COHERES")
MISTRALS: dict[str, Any] = stored(__file__, "MISTRALS")
OPENAIS: dict[str, Any] = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Look"}]},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "aB3dE6gH9", "content": "rain"},
    ],
    "tools": [{"type": "function", "function": FUNCTION}],
    "tool_choice": "required",
    "stop": ["END"],
    "max_tokens": 9,
    "temperature": 0.5,
    "top_p": 0.5,
}
PICTURE, ADDRESS = (("image/png", PNG),), (("url", "https://x/a.png"),)
FORCED: dict[str, Any] = {"schema": SCHEMA, "tool_choice": "function:weather"}
REQUIRED: dict[str, Any] = {"schema": SCHEMA, "tool_choice": "required", "images": ADDRESS, **SAMPLED}
ON_GOOGLE = {**FORCED, **SAMPLED, "images": PICTURE, "documents": (("url", "gs://bucket/a.pdf"),)}
ON_BEDROCK = {"images": (*PICTURE, ("url", "s3://bucket/a.png")), "documents": (("application/pdf", PDF),)}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("provider", "sent", "understood"),
    [
        (
            "anthropic",
            ANTHROPICS,
            {**FORCED, "images": PICTURE, "documents": (("url", "https://files.test/a.pdf"),), "signatures": ("b3du",)},
        ),
        ("bedrock", BEDROCKS, {**FORCED, **SAMPLED, **ON_BEDROCK, "signatures": ("c2ln",), "secret": KEY_ID}),
        ("google", GOOGLES, {**ON_GOOGLE, "signatures": ("c2lnbmVk",)}),
        ("google_vertex", GOOGLES, {**ON_GOOGLE, "signatures": ("c2lnbmVk",)}),
        ("cohere", COHERES, {**REQUIRED, "documents": (("text/plain", b"Cologne"),)}),
        ("mistral", MISTRALS, {**REQUIRED, "signatures": ("s1",)}),
        *((vendor, OPENAIS, {**SAMPLED, "tool_choice": "required"}) for vendor in ("openai", "azure_openai", "groq")),
    ],
)
def test_request__of_the_sdk__understood(
    server: DialectServer, provider: str, sent: dict[str, Any], understood: dict[str, Any], stream: bool
) -> None:
    fake = FAKES[provider]
    server.play("s", answer_with(fake, Story(text="ok")))
    access = fake.credentials(server.base_url("s"))
    ask(access, stream=stream, **sent)
    (request,) = server.requests_of("s", fake)
    model = request.model
    assert model
    expected = {"model": model, "stream": stream, "secret": access.secret, **READ, **understood}
    assert request == ReadRequest(**expected)


@pytest.mark.parametrize(
    ("provider", "sent", "raised", "words"),
    [
        (
            "bedrock",
            {"messages": [{"role": "assistant", "content": [{"text": "x"}]}]},
            ClientError,
            "start with a user",
        ),
        ("bedrock", {"messages": [{"role": "user", "content": [{"text": " "}]}]}, ClientError, "blank"),
        ("bedrock", {"messages": [{"role": "user", "content": [{"text": "x"}]}] * 2}, ClientError, "alternate"),
        *(
            (
                provider,
                {
                    "model": "gemini-3-flash-preview",
                    "contents": [
                        ASKED,
                        types.Content(role="model", parts=[types.Part(function_call=CALLED)]),
                        types.Content(role="user", parts=[types.Part(function_response=ANSWERED)]),
                    ],
                },
                errors.ClientError,
                "missing a thought_signature",
            )
            for provider in ("google", "google_vertex")
        ),
        (
            "ollama",
            {
                "messages": [
                    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x/a.png"}}]}
                ]
            },
            openai.BadRequestError,
            "data only",
        ),
    ],
)
def test_request__that_the_vendor_refuses__refused(
    server: DialectServer, provider: str, sent: dict[str, Any], raised: type[Exception], words: str
) -> None:
    fake = FAKES[provider]
    server.play("s", answer_with(fake, Story(text="x")))
    with pytest.raises(raised, match=words):
        ask(fake.credentials(server.base_url("s")), **sent)


@pytest.mark.parametrize("missing", ["x-api-key", "anthropic-version", "content-type"])
def test_request__to_anthropic_without_a_header__refused(missing: str) -> None:
    headers = {"x-api-key": "k", "anthropic-version": "2023-06-01", "content-type": "application/json"}
    del headers[missing]
    body = {"model": "claude-sonnet-5", "max_tokens": 100, "messages": HALLO}
    with pytest.raises(AssertionError):
        FAKES["anthropic"].read("/v1/messages", headers, json.dumps(body).encode())


@tabled
def test_request__beyond_the_vendors_types__refused(provider: str, wrong: dict[str, Any]) -> None:
    fake, path = FAKES[provider], {"cohere": "/v2/chat", "mistral": "/v1/chat/completions"}[provider]
    body = json.dumps({"model": "m", "messages": HALLO, **wrong}).encode()
    with pytest.raises((AssertionError, KeyError)):
        fake.read(path, {"authorization": f"Bearer {fake.credentials('').secret}"}, body)
