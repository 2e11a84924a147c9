"""The streams of our own that every surface makes of every provider dialect."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from core.errors import ApplicationError
from gateway.errors import from_provider
from gateway.surfaces.base import Surface, SurfaceRequest
from gateway.surfaces.chat.surface import CHAT
from gateway.surfaces.completions.surface import SURFACE as COMPLETIONS
from gateway.surfaces.gemini.surface import GeminiSurface
from gateway.surfaces.messages.surface import SURFACE as MESSAGES
from gateway.surfaces.responses.surface import SURFACE as RESPONSES
from integrations.providers.base import StreamTranslator
from integrations.providers.errors import ProviderError
from integrations.providers.openai.responses_adapter import ADAPTERS
from tests.fakes.dialects.openai_responses import RESPONSES as FAKES_OF_RESPONSES
from tests.fakes.dialects.story import Call, FakeDialect, Story, Streamed
from tests.integrations.adapters.subject import BASE_URL, CLOCK, WEATHER, Subject, subject_of

SURFACES: Mapping[str, Surface] = {
    "chat": CHAT,
    "responses": RESPONSES,
    "messages": MESSAGES,
    "gemini": GeminiSurface("fake-1", streams=True),
    "completions": COMPLETIONS,
}
# The folder of each dialect's adapter, and a provider that speaks it.
DIALECTS = {
    "openai": "openai",
    "anthropic": "anthropic",
    "google": "google",
    "vertex": "google_vertex",
    "bedrock": "bedrock",
    "cohere": "cohere",
    "mistral": "mistral",
}
# OpenAI's dialect has a second API, by which chat completions with tools go.
BY_RESPONSES = "openai_responses"
WAYS = (*DIALECTS, BY_RESPONSES)
SEQUENCES = Path(__file__).resolve().parent / "sequences"
REQUEST_ID = "0199e0a0"
REQUESTS: Mapping[str, Mapping[str, Any]] = {
    "chat": {"messages": [{"role": "user", "content": "Hi"}]},
    "responses": {"input": "Hi", "include": ["reasoning.encrypted_content"]},
    "messages": {"max_tokens": 64, "messages": [{"role": "user", "content": "Hi"}]},
    "gemini": {
        "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
        "generationConfig": {"thinkingConfig": {"includeThoughts": True}},
    },
    "completions": {"prompt": "Hi"},
}
CALLS = (Call("callAAA01", "get_weather", {"city": "Oslo"}), Call("callBBB02", "get_time", {"zone": "CET"}))
_BROKEN = "broken off"


def request_of(surface: str) -> SurfaceRequest:
    fields = {"model": "fake-1", "stream": True, **REQUESTS[surface]}
    return SURFACES[surface].read(json.dumps(fields).encode())


def subject_at(way: str) -> Subject:
    """Returns the provider of the dialect, or OpenAI by its Responses API."""
    if way != BY_RESPONSES:
        return subject_of(DIALECTS[way])
    fake = FAKES_OF_RESPONSES["openai"]
    return Subject("openai", ADAPTERS["openai"], fake, fake.credentials(BASE_URL), "gpt-5.5")


def stories_of(surface: str, fake: FakeDialect) -> dict[str, Story]:
    """Returns the answers that a provider of the dialect can give to a client of the surface."""
    stories = _stories_of(fake)
    # The request for a completion of a text can hold no tools.
    return {name: story for name, story in stories.items() if surface != "completions" or not story.calls}


def _stories_of(fake: FakeDialect) -> dict[str, Story]:
    can = fake.can
    calls = CALLS if can.parallel_tools else CALLS[:1]
    stories = {
        "text": Story(text="Grüße 👋, the answer is 42."),
        "calls": Story(calls=calls, finish="tool_calls"),
        "text and calls": Story(text="Let me see.", calls=calls, finish="tool_calls"),
        "cut off": Story(text="Once upon", finish="length"),
        "filtered": Story(text="Once upon", finish="content_filter"),
        "nothing": Story(),
        _BROKEN: Story(text="Once upon"),
    }
    if can.reasoning:
        signature = "c2lnbmF0dXJl" if can.signatures else ""
        stories["reasoning and text"] = Story(text="Yes.", reasoning="Is it so?", signature=signature)
        stories["reasoning and calls"] = Story(
            reasoning="Is it so?", signature=signature, calls=calls, finish="tool_calls"
        )
    return stories


def upstream(subject: Subject, name: str, story: Story) -> Streamed:
    return subject.fake.stream_failure(story, "overloaded") if name == _BROKEN else subject.fake.stream(story)


def translator_of(subject: Subject) -> StreamTranslator:
    return subject.adapter.stream(subject.request(stream=True, tools=[WEATHER, CLOCK]))


def encoded(surface: str, translator: StreamTranslator, pieces: Iterable[bytes]) -> bytes:
    """Returns the surface's events for a provider's bytes, as the pipeline makes them."""
    stream = SURFACES[surface].stream(request_of(surface), REQUEST_ID)
    frames = []
    try:
        for piece in pieces:
            frames.append(stream.feed([event.data for event in translator.feed(piece)]))
        return b"".join([*frames, stream.close([event.data for event in translator.closing()])])
    except ProviderError as failure:
        error: ApplicationError = from_provider(failure)
        return b"".join([*frames, stream.fail(error)])


def streams_of(surface: str, dialect: str) -> dict[str, bytes]:
    """Returns the surface's streams for each story of the dialect."""
    subject, made = subject_at(dialect), {}
    for name, story in stories_of(surface, subject.fake).items():
        made[name] = encoded(surface, translator_of(subject), upstream(subject, name, story).events)
    return made
