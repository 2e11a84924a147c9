"""Tests the fakes of Gemini against the official SDK: it reads their answers, and they read its requests."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest
from google.genai import Client, errors, types
from google.oauth2.credentials import Credentials as Token

from integrations.providers.usage import Usage
from tests.fakes.dialects.google import FAKE, VERTEX_FAKE, GoogleFake
from tests.fakes.dialects.server import DialectServer, answer_with, breaks, fails
from tests.fakes.dialects.story import Call, ReadRequest, Story

SIGNATURE = base64.b64encode(b"signed by Google").decode()
CALLS = (Call("call_1", "weather", {"city": "Oslo"}), Call("call_2", "time", {}))
STORY = Story(
    text="Hallo 👋 “Welt”",
    reasoning="Let me think.",
    signature=SIGNATURE,
    calls=CALLS,
    finish="tool_calls",
    usage=Usage(prompt_tokens=30, completion_tokens=12, cache_read_tokens=8, reasoning_tokens=4),
)
PNG = b"\x89PNG"
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
CONTENTS: list[types.ContentUnion] = [
    types.Content(
        role="user",
        parts=[
            types.Part(text="Weather?"),
            types.Part(inline_data=types.Blob(mime_type="image/png", data=PNG)),
            types.Part(file_data=types.FileData(mime_type="application/pdf", file_uri="gs://bucket/a.pdf")),
        ],
    ),
    types.Content(
        role="model",
        parts=[
            types.Part(
                function_call=types.FunctionCall(id="c", name="weather", args={"a": 1}),
                thought_signature=base64.b64decode(SIGNATURE),
            )
        ],
    ),
    types.Content(
        role="user",
        parts=[types.Part(function_response=types.FunctionResponse(id="c", name="weather", response={"result": "18"}))],
    ),
]
CONFIG = types.GenerateContentConfig(
    system_instruction="Be brief.",
    tools=[
        types.Tool(
            function_declarations=[types.FunctionDeclaration(name="weather", parameters_json_schema={"type": "object"})]
        )
    ],
    tool_config=types.ToolConfig(
        function_calling_config=types.FunctionCallingConfig(
            mode=types.FunctionCallingConfigMode.ANY, allowed_function_names=["weather"]
        )
    ),
    automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    response_mime_type="application/json",
    response_json_schema=SCHEMA,
    max_output_tokens=7,
    temperature=0.5,
    top_p=0.9,
    stop_sequences=["END"],
)


@pytest.fixture(params=[FAKE, VERTEX_FAKE], ids=["google", "google_vertex"])
def fake(request: pytest.FixtureRequest) -> GoogleFake:
    found: GoogleFake = request.param
    return found


@pytest.fixture
def client(server: DialectServer, fake: GoogleFake) -> Iterator[Client]:
    with sdk(server, fake) as sdk_client:
        yield sdk_client


def sdk(server: DialectServer, fake: GoogleFake) -> Client:
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


def counted(usage: types.GenerateContentResponseUsageMetadata | None) -> tuple[int | None, ...]:
    assert usage is not None
    return (
        usage.prompt_token_count,
        usage.candidates_token_count,
        usage.thoughts_token_count,
        usage.cached_content_token_count,
        usage.total_token_count,
    )


def parts_of(response: types.GenerateContentResponse) -> list[types.Part]:
    assert response.candidates
    content = response.candidates[0].content
    return (content and content.parts) or []


def test_fake__whole_answer__as_the_sdk_reads_it(server: DialectServer, client: Client, fake: GoogleFake) -> None:
    server.play(fake.provider, answer_with(fake, STORY))
    response = client.models.generate_content(model="gemini-2.5-flash", contents="Hi")
    thought, text, *calls = parts_of(response)
    assert (thought.text, thought.thought) == (STORY.reasoning, True)
    assert text.text == STORY.text
    assert [(call.function_call.name, call.function_call.args) for call in calls if call.function_call] == [
        (call.name, call.arguments) for call in CALLS
    ]
    assert [call.thought_signature for call in calls] == [b"signed by Google", None]
    assert response.candidates is not None
    assert response.candidates[0].finish_reason is types.FinishReason.STOP
    assert counted(response.usage_metadata) == (30, 8, 4, 8, 42)
    assert (response.model_version, response.response_id) == (STORY.model, "fake-response-1")


def test_fake__stream__as_the_sdk_reads_it(server: DialectServer, client: Client, fake: GoogleFake) -> None:
    server.play(fake.provider, answer_with(fake, STORY))
    responses = list(client.models.generate_content_stream(model="gemini-2.5-flash", contents="Hi"))
    parts = [part for response in responses for part in parts_of(response)]
    assert "".join(part.text or "" for part in parts if part.thought) == STORY.reasoning
    assert "".join(part.text or "" for part in parts if not part.thought) == STORY.text
    assert [part.function_call.name for part in parts if part.function_call] == ["weather", "time"]
    assert [part.thought_signature for part in parts if part.thought_signature] == [b"signed by Google"]
    reasons = [response.candidates[0].finish_reason for response in responses if response.candidates]
    assert reasons == [None] * (len(reasons) - 1) + [types.FinishReason.STOP]
    assert counted(responses[-1].usage_metadata) == (30, 8, 4, 8, 42)


@pytest.mark.parametrize(
    ("finish", "reason"),
    [("length", types.FinishReason.MAX_TOKENS), ("content_filter", types.FinishReason.SAFETY)],
)
def test_fake__other_ends__as_the_sdk_names_them(
    server: DialectServer, client: Client, fake: GoogleFake, finish: str, reason: types.FinishReason
) -> None:
    story = Story(text="Hi", finish="length" if finish == "length" else "content_filter")
    server.play(fake.provider, answer_with(fake, story))
    response = client.models.generate_content(model="gemini-2.5-flash", contents="Hi")
    assert response.candidates is not None
    assert response.candidates[0].finish_reason is reason


def test_fake__failure__as_the_sdk_raises_it(server: DialectServer, client: Client, fake: GoogleFake) -> None:
    server.play(fake.provider, fails(fake, 429, "Quota exceeded.", retry_after=7))
    with pytest.raises(errors.ClientError) as caught:
        client.models.generate_content(model="gemini-2.5-flash", contents="Hi")
    assert (caught.value.code, caught.value.status, caught.value.message) == (
        429,
        "RESOURCE_EXHAUSTED",
        "Quota exceeded.",
    )


def test_fake__failure_in_a_stream__as_the_sdk_raises_it(
    server: DialectServer, client: Client, fake: GoogleFake
) -> None:
    server.play(fake.provider, breaks(fake, Story(text="Hallo"), "The model is overloaded."))
    texts = []
    with pytest.raises(errors.ServerError, match="overloaded"):
        for response in client.models.generate_content_stream(model="gemini-2.5-flash", contents="Hi"):
            texts.append(response.text)
    assert "".join(text or "" for text in texts) == "Hallo"


def test_fake__request_of_the_sdk__understood(server: DialectServer, client: Client, fake: GoogleFake) -> None:
    server.play(fake.provider, answer_with(fake, STORY))
    client.models.generate_content(model="gemini-3-flash-preview", contents=CONTENTS, config=CONFIG)
    request = server.requests_of(fake.provider, fake)[-1]
    assert request == ReadRequest(
        model="gemini-3-flash-preview",
        system="Be brief.",
        turns=(("user", "Weather?"),),
        images=(("image/png", PNG),),
        documents=(("url", "gs://bucket/a.pdf"),),
        tools=("weather",),
        calls=(Call("c", "weather", {"a": 1}),),
        results=(("c", "18"),),
        tool_choice="function:weather",
        schema=SCHEMA,
        stop=("END",),
        max_tokens=7,
        temperature=0.5,
        top_p=0.9,
        signatures=request.signatures,
        secret=fake.credentials("").secret,
    )
    assert [base64.urlsafe_b64decode(signature) for signature in request.signatures] == [b"signed by Google"]


def test_fake__unsigned_call_of_the_third_generation__refused(
    server: DialectServer, client: Client, fake: GoogleFake
) -> None:
    server.play(fake.provider, answer_with(fake, STORY))
    question, _, answered = CONTENTS
    unsigned = types.Content(
        role="model", parts=[types.Part(function_call=types.FunctionCall(id="c", name="weather", args={}))]
    )
    with pytest.raises(errors.ClientError, match="missing a thought_signature"):
        client.models.generate_content(model="gemini-3-flash-preview", contents=[question, unsigned, answered])
