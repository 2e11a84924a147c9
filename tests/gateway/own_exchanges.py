"""Made-up exchanges in the dialects of `native.py`, produced by the fakes, for a clone without SHARED_DIR."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

from tests.fakes.dialects.registry import FAKES
from tests.fakes.dialects.story import Call, Reply, Story, Streamed
from tests.gateway.recorded import Recording
from tests.integrations.adapters.subject import WEATHER, subject_of

# Each provider has two wire APIs, one for whole answers and one for streams.
APIS = {
    "anthropic": ("anthropic.messages", "anthropic.messages"),
    "google": ("google.generateContent", "google.streamGenerateContent"),
    "google_vertex": ("google.generateContent", "google.streamGenerateContent"),
    "bedrock": ("bedrock.converse", "bedrock.converse_stream"),
    "cohere": ("cohere.v2_chat", "cohere.v2_chat"),
}
STORIES = {
    "plain": Story(text="Grüße 👋, the answer is 42."),
    "call": Story(text="Let me see.", calls=(Call("callAAA01", "get_weather", {"city": "Oslo"}),), finish="tool_calls"),
    "length": Story(text="Once upon", finish="length"),
}


def own_exchanges() -> Iterator[Recording]:
    for provider, (api, stream_api) in APIS.items():
        fake = FAKES[provider]
        for name, story in STORIES.items():
            yield _exchange(provider, api, name, fake.whole(story))
            yield _exchange(provider, stream_api, f"{name}_stream", fake.stream(story))
        broken = fake.stream_failure(STORIES["plain"], "the model is overloaded")
        yield _exchange(provider, stream_api, "broken", broken, "resp:stream_error")
        for status in (400, 401, 404, 429, 500, 503):
            yield _exchange(provider, api, f"error_{status}", fake.failure(status, f"own failure {status}"))


def _exchange(provider: str, api: str, name: str, answer: Reply | Streamed, *features: str) -> Recording:
    subject, stream = subject_of(provider), isinstance(answer, Streamed)
    upstream = subject.build(stream=stream, tools=[WEATHER] if "call" in name else ...)
    body = b"".join(answer.events) if isinstance(answer, Streamed) else answer.body
    headers = {field.lower(): value for field, value in answer.headers.items()}
    response: dict[str, Any] = {
        "status": answer.status if isinstance(answer, Reply) else 200,
        "headers": headers,
        "content_type": headers["content-type"],
        "stream": stream,
    }
    binary = "eventstream" in headers["content-type"]
    response |= {"body_base64": base64.b64encode(body).decode()} if binary else {"body_text": body.decode()}
    return {
        "name": f"own_{provider}_{name}",
        "provider": provider,
        "api": api,
        "model": subject.model,
        "features": list(features),
        "request": {"body": json.loads(upstream.body)},
        "response": response,
    }
