"""The ways of a request through the gateway: from a client of each protocol to a provider that speaks it or not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from tests.fakes.dialects.registry import FAKES
from tests.fakes.dialects.story import Story
from tests.fakes.scripted import Script, Step
from tests.fakes.upstream import Connection, Received
from tests.gateway.service import Gateway
from tests.gateway.surfaces.golden.answers import STREAMED, WHOLE, Answer
from tests.gateway.surfaces.golden.streams import REQUEST_ID, SURFACES, encoded, request_of, translator_of
from tests.gateway.wire import bearer
from tests.integrations.adapters.subject import subject_of

PATHS = {"chat": "chat/completions", "responses": "responses", "messages": "messages", "completions": "completions"}
GEMINI = "gemini"
"""The surface whose model and method stand in the address, and in no body."""
SURFACES_OF_CHAT = (*PATHS, GEMINI)
TRANSLATED_BY = "groq/llama-3.3-70b-versatile"

Json = dict[str, Any]


@dataclass(frozen=True)
class Way:
    """A client's protocol and the model it asks for; `is_native` says that the provider gets the client's bytes."""

    surface: str
    model: str = TRANSLATED_BY
    is_native: bool = False

    @property
    def provider(self) -> str:
        return self.model.partition("/")[0]

    @property
    def operation(self) -> str:
        """Returns the operation of a request's record."""
        return "generate_content" if self.surface == GEMINI else self.surface

    @property
    def can_call(self) -> bool:
        """Returns whether an answer of the client's protocol can hold calls of tools."""
        return self.surface != "completions"

    def body(self, text: str = "Hi", *, system: str = "", schema: Any = None, **more: Any) -> Json:
        """Returns a request of the client's protocol. `ask` takes what stands in the address out of it again."""
        body: Json = {"model": self.model, **_BODIES[self.surface](text, system), **more}
        return body | (_SCHEMAS[self.surface](schema) if schema is not None else {})

    def ask(
        self, gateway: Gateway, body: Json | None = None, *, headers: Mapping[str, str] | None = None
    ) -> httpx2.Response:
        sent = dict(body if body is not None else self.body())
        path = self.path(model=sent["model"], stream=bool(sent.get("stream")))
        if self.surface == GEMINI:
            sent = {name: value for name, value in sent.items() if name not in ("model", "stream")}
        url, content = f"{gateway.service.base_url()}{path}", json.dumps(sent).encode()
        return gateway.client.post(url, content=content, headers={**bearer(gateway.key), **(headers or {})})

    def path(self, *, model: Any = None, stream: bool = False) -> str:
        if self.surface != GEMINI:
            return f"/api/gateway/v1/{PATHS[self.surface]}"
        method = "streamGenerateContent?alt=sse" if stream else "generateContent"
        return f"/api/gateway/v1beta/models/{model or self.model}:{method}"

    def read(self, response: httpx2.Response) -> Answer:
        """Returns the answer, as the vendor's SDK reads it."""
        assert response.status_code == 200, response.text
        is_stream = response.headers["content-type"].startswith("text/event-stream")
        return (STREAMED if is_stream else WHOLE)[self.surface](response.content)

    def answer(self, **story: Any) -> Step:
        """Returns the provider's step that answers with the story, whole or streamed as the request asks."""
        return answering(self.provider, Story(**story))

    def path_of(self, script: Script) -> str:
        """Returns the part of the provider's address that says which of its protocols the request spoke."""
        return script.received[-1].path.rpartition("/")[2]

    def system_of(self, script: Script) -> str:
        """Returns the instructions that the provider received last, empty without any."""
        body = json.loads(script.received[-1].body)
        if self.path_of(script) == "responses":
            return str(body.get("instructions") or "")
        if self.provider == "google":
            return "".join(part["text"] for part in body.get("systemInstruction", {}).get("parts", ()))
        if "system" in body or self.provider == "anthropic":
            found = body.get("system") or ""
            return found if isinstance(found, str) else "".join(block["text"] for block in found)
        return "".join(one["content"] for one in body["messages"] if one["role"] == "system")


def error_of(response: httpx2.Response) -> Json:
    """Returns the error, which the body of every protocol has at the same place, with the gateway's code: in Google's
    form that is the reason among the details."""
    error: Json = response.json()["error"]
    return {**error, "code": error["details"][0]["reason"].lower()} if isinstance(error["code"], int) else error


def answering(provider: str, story: Story) -> Step:
    fake = FAKES[provider]

    async def step(request: Received, connection: Connection) -> None:
        if request.path.endswith("/responses"):
            await _tell_in_responses(provider, story, request, connection)
            return
        if ":streamGenerateContent" not in request.path and not json.loads(request.body).get("stream"):
            whole = fake.whole(story)
            await connection.send_whole(whole.status, whole.body, dict(whole.headers))
            return
        streamed = fake.stream(story)
        await connection.start_stream(200, dict(streamed.headers))
        for event in streamed.events:
            await connection.send_chunk(event)
        await connection.end_stream()

    return step


async def _tell_in_responses(provider: str, story: Story, request: Received, connection: Connection) -> None:
    """Answers as OpenAI's Responses API does. The surface writes the answer: `golden` holds its events against those of
    recorded streams."""
    subject = subject_of(provider)
    if not json.loads(request.body).get("stream"):
        completion = subject.adapter.parse_response(subject.request(), subject.fake.whole(story).body).body
        whole = SURFACES["responses"].answer(request_of("responses"), completion, REQUEST_ID)
        await connection.send_whole(200, whole, {"content-type": "application/json"})
        return
    await connection.start_stream(200, {"content-type": "text/event-stream"})
    await connection.send_chunk(encoded("responses", translator_of(subject), subject.fake.stream(story).events))
    await connection.end_stream()


def _chat(text: str, system: str) -> Json:
    first = [{"role": "system", "content": system}] if system else []
    return {"messages": [*first, {"role": "user", "content": text}], "max_tokens": 64}


def _responses(text: str, system: str) -> Json:
    return {"input": text, "max_output_tokens": 64, **({"instructions": system} if system else {})}


def _messages(text: str, system: str) -> Json:
    body: Json = {"max_tokens": 64, "messages": [{"role": "user", "content": text}]}
    return {**body, "system": system} if system else body


def _gemini(text: str, system: str) -> Json:
    body: Json = {
        "contents": [{"role": "user", "parts": [{"text": text}]}],
        "generationConfig": {"maxOutputTokens": 64},
    }
    return {**body, "systemInstruction": {"parts": [{"text": system}]}} if system else body


def _completions(text: str, system: str) -> Json:
    assert not system, "the request for a completion of a text has no place for instructions"
    return {"prompt": text, "max_tokens": 64}


_BODIES = {"chat": _chat, "responses": _responses, "messages": _messages, GEMINI: _gemini, "completions": _completions}
_SCHEMAS: Mapping[str, Any] = {
    "chat": lambda schema: _response_format(schema),
    "completions": lambda schema: _response_format(schema),
    "responses": lambda schema: {"text": {"format": {"type": "json_schema", "name": "answer", "schema": schema}}},
    GEMINI: lambda schema: {"generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": schema}},
    "messages": lambda schema: {"output_config": {"format": {"type": "json_schema", "schema": schema}}},
}


def _response_format(schema: Any) -> Json:
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}}


BY_BODY = [
    pytest.param(Way("chat"), id="chat"),
    pytest.param(Way("responses"), id="responses"),
    pytest.param(Way("messages"), id="messages"),
    pytest.param(Way("responses", "openai/gpt-4o", is_native=True), id="responses-native"),
    pytest.param(Way("messages", "anthropic/claude-sonnet-4-5", is_native=True), id="messages-native"),
]
"""The ways whose requests name the model, and whether to stream, in their bodies."""
WITH_INSTRUCTIONS = [
    *BY_BODY,
    pytest.param(Way(GEMINI), id="gemini"),
    pytest.param(Way(GEMINI, "google/gemini-2.5-flash", is_native=True), id="gemini-native"),
]
WAYS = [*WITH_INSTRUCTIONS, pytest.param(Way("completions"), id="completions")]
EVERY_WAY = pytest.mark.parametrize("way", WAYS)
EVERY_WAY_WITH_INSTRUCTIONS = pytest.mark.parametrize("way", WITH_INSTRUCTIONS)
WHOLE_AND_STREAMED = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
