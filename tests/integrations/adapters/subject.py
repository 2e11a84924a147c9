"""A provider under test: its adapter, its fake, and functions that connect them without a server."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec import structs

from integrations.providers.base import (
    Adapter,
    ChatRequest,
    Credentials,
    Media,
    StreamEvent,
    StreamTranslator,
    UpstreamRequest,
)
from integrations.providers.errors import ProviderError, UnsupportedParameterError
from integrations.providers.openai.responses_adapter import ADAPTERS as RESPONSES_ADAPTERS
from integrations.registry import adapter_for
from tests.fakes.dialects.openai_responses import RESPONSES
from tests.fakes.dialects.registry import FAKES
from tests.fakes.dialects.rules.thinkers import WANTING_REASONING
from tests.fakes.dialects.story import FakeDialect, ReadRequest, Story, Streamed

BASE_URL = "https://upstream.test/base"
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
PDF = b"%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"
USER: dict[str, Any] = {"role": "user", "content": "Grüße 👋"}
WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}
CLOCK: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_time",
        "description": "The time in a zone",
        "parameters": {"type": "object", "properties": {"zone": {"type": "string"}}, "required": ["zone"]},
    },
}


@dataclass
class Outcome:
    """The result of translating a stream: chunks of events, and the error that ended it, if any."""

    events: list[StreamEvent] = field(default_factory=list)
    error: ProviderError | None = None
    translator: StreamTranslator | None = None

    @property
    def chunks(self) -> list[dict[str, Any]]:
        return [json.loads(event.data) for event in self.events]


def thought_over(provider: str, message: Any) -> Any:
    """Returns a message as the provider's own clients send it back: some vendors refuse calls without reasoning."""
    if provider not in WANTING_REASONING or not isinstance(message, Mapping) or not message.get("tool_calls"):
        return message
    return {"reasoning_content": "It has to be looked up.", **message}


@dataclass(frozen=True)
class Subject:
    provider: str
    adapter: Adapter
    fake: FakeDialect
    credentials: Credentials
    model: str

    def request(self, *, crosses_vendor: bool = False, **fields: Any) -> ChatRequest:
        """Returns a request with `media` and the access token that the adapter needs, as the pipeline supplies them."""
        given = {"model": self.model, "messages": [USER], **fields}
        if not crosses_vendor and isinstance(messages := given["messages"], list):
            given["messages"] = [thought_over(self.provider, message) for message in messages]
        body = {name: value for name, value in given.items() if value is not ...}
        request = ChatRequest(
            model=self.model,
            stream=bool(body.get("stream")),
            body=json.dumps(body, ensure_ascii=False).encode(),
            fields=body,
            crosses_vendor=crosses_vendor,
        )
        needs = self.adapter.needs(request, self.credentials)
        return structs.replace(
            request,
            media={url: fetched(url) for url in needs.media},
            access_token="ya29.canary-access-token" if needs.access_token else "",
        )

    def that_takes(self, parameters: Mapping[str, Any]) -> Subject:
        """Returns the subject with a model that takes all of these parameters. A direct request goes out as its client
        wrote it, and OpenAI refuses an effort where its default model has none."""
        is_openai = self.provider in ("openai", "azure_openai")
        return replace(self, model="gpt-5.6") if is_openai and "reasoning_effort" in parameters else self

    def build(self, *, crosses_vendor: bool = False, **fields: Any) -> UpstreamRequest:
        return self.adapter.build_request(self.request(crosses_vendor=crosses_vendor, **fields), self.credentials)

    def ask(self, *, crosses_vendor: bool = False, **fields: Any) -> ReadRequest:
        """Returns the request as the provider's fake reads it."""
        return self.read(self.build(crosses_vendor=crosses_vendor, **fields))

    def read(self, upstream: UpstreamRequest) -> ReadRequest:
        # The upstream address has to begin with the integration's base URL, in which the fake's server would be
        # addressed.
        assert upstream.url.startswith(BASE_URL), upstream.url
        return self.fake.read(upstream.url.removeprefix(BASE_URL), upstream.headers, upstream.body)

    def whole(self, story: Story, **fields: Any) -> dict[str, Any]:
        answer = self.adapter.parse_response(self.request(**fields), self.fake.whole(story).body)
        decoded: dict[str, Any] = json.loads(answer.body)
        return decoded

    def message(self, story: Story, **fields: Any) -> dict[str, Any]:
        message: dict[str, Any] = self.whole(story, **fields)["choices"][0]["message"]
        return message

    def translate(self, pieces: Iterable[bytes], **fields: Any) -> Outcome:
        """Feeds the pieces to the translator; events from before an error are kept."""
        outcome = Outcome(translator=self.adapter.stream(self.request(stream=True, **fields)))
        assert outcome.translator is not None
        try:
            for piece in pieces:
                outcome.events += outcome.translator.feed(piece)
            outcome.events += outcome.translator.closing()
        except ProviderError as error:
            outcome.error = error
        return outcome

    def streamed(self, story: Story | Streamed, **fields: Any) -> Outcome:
        answer = self.fake.stream(story) if isinstance(story, Story) else story
        return self.translate(answer.events, **fields)

    def secrets(self) -> set[str]:
        """Returns every text that must not be shown: the key and the secret fields beside it."""
        extra = {self.credentials.extra.get(name, "") for name in self.adapter.traits.secret_extra}
        return {secret for secret in {self.credentials.secret, *extra} if len(secret) > 3}


def subject_of(provider: str) -> Subject:
    """Returns the subject of the provider. Fails when the provider has no row in the fakes, since it would be shipped
    untested."""
    if provider not in FAKES:
        raise AssertionError(
            f"provider {provider!r} has no fake in tests/fakes/dialects/: see CONTRIBUTING, 'Adding a provider'"
        )
    adapter, fake = adapter_for(provider), FAKES[provider]
    model = adapter.traits.default_model or "some-model"
    return Subject(provider, adapter, fake, fake.credentials(BASE_URL), model)


def subject_by_responses() -> Subject:
    """Returns OpenAI as it is asked by its Responses API."""
    fake = RESPONSES["openai"]
    return Subject("openai", RESPONSES_ADAPTERS["openai"], fake, fake.credentials(BASE_URL), "gpt-4o-mini")


def fetched(url: str) -> Media:
    return Media("application/pdf", PDF) if url.endswith(".pdf") else Media("image/png", PNG)


def refusal_or_request(subject: Subject, **fields: Any) -> UnsupportedParameterError | UpstreamRequest:
    try:
        return subject.build(**fields)
    except UnsupportedParameterError as refused:
        return refused


def is_named(what: str, upstream: UpstreamRequest) -> bool:
    """Returns True when a warning names the parameter that was left out."""
    return any(what in warning for warning in upstream.warnings)


def without_created(events: Iterable[StreamEvent]) -> list[Mapping[str, Any]]:
    """Returns the chunks without the second in which their stream began."""
    return [{**json.loads(event.data), "created": 0} for event in events]


def pieces(data: bytes, cuts: Iterable[int]) -> Iterator[bytes]:
    start = 0
    for cut in sorted({cut % (len(data) + 1) for cut in cuts}):
        yield data[start:cut]
        start = cut
    yield data[start:]


def data_url(media_type: str = "image/png", data: bytes = PNG) -> str:
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"
