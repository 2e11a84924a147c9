"""Tests that the answers of every fake are those of its vendor: the vendor's official SDK reads them."""

from __future__ import annotations

import anthropic
import openai
import pytest
from botocore.exceptions import ClientError, EventStreamError
from cohere.core.api_error import ApiError
from google.genai import errors
from mistralai.client.errors import HTTPValidationError, SDKError

from integrations.providers.usage import Usage
from tests.fakes.dialects.openai import VENDORS
from tests.fakes.dialects.registry import FAKES, distinct_providers
from tests.fakes.dialects.server import DialectServer, breaks, fails
from tests.fakes.dialects.story import Call, FakeDialect, Finish, Story
from tests.integrations.fakes.sdks import ask
from tests.integrations.recordings.readers import read
from tests.integrations.recordings.reading import Choice, Reading
from tests.night import cases
from tests.recordings import OPENAI_DIALECT, Recording

OWN = {
    "anthropic": "anthropic.messages",
    "google": "google.generateContent",
    "google_vertex": "google.generateContent",
    "bedrock": "bedrock.converse",
    "cohere": "cohere.v2_chat",
    "mistral": OPENAI_DIALECT,
}
LOOKALIKES = cases(sorted(VENDORS), by_day=[name for name in distinct_providers() if name in VENDORS])
PROVIDERS = [*OWN, *LOOKALIKES]
SIGNATURE = "c2lnbmVk"
STORY = Story(
    text="Grüße 👋, “18” degrees.",
    reasoning="The user greets me.",
    signature=SIGNATURE,
    calls=(Call("aB3dE6gH9", "weather", {"city": "Köln"}), Call("zY8xW5vU2", "time", {})),
    finish="tool_calls",
    usage=Usage(prompt_tokens=30, completion_tokens=12, cache_read_tokens=8),
)


def read_by_sdk(fake: FakeDialect, story: Story, *, stream: bool) -> Reading:
    """Returns what the SDK reads in the fake's answer, as in a recording of it."""
    reply = fake.stream(story) if stream else fake.whole(story)
    body = b"".join(fake.stream(story).events) if stream else fake.whole(story).body
    return read(
        Recording(
            api=OWN.get(fake.provider, OPENAI_DIALECT),
            name="fake",
            provider=fake.provider,
            model=story.model,
            stream=stream,
            status=200,
            features=frozenset(),
            path="",
            request={},
            headers=reply.headers,
            body=body,
            request_headers={},
        )
    )


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_story__of_everything__read_by_the_sdk(provider: str, stream: bool) -> None:
    reading = read_by_sdk(FAKES[provider], STORY, stream=stream)
    choice: Choice = reading.choices[0]
    assert (choice.text, choice.finish) == (STORY.text, "tool_calls")
    assert [call[1:] for call in choice.calls] == [(call.name, call.arguments) for call in STORY.calls]
    if provider in OWN:
        assert choice.reasoning == STORY.reasoning
        assert choice.signatures in (None, [SIGNATURE])
    assert reading.usage is not None
    assert (reading.usage["prompt_tokens"], reading.usage["completion_tokens"]) == (30, 12)
    assert reading.usage.get("cache_read_tokens", 8) == (8 if FAKES[provider].can.cached_usage else 0)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("finish", ["stop", "length", "content_filter"])
@pytest.mark.parametrize("provider", OWN)
def test_story__of_any_end__in_the_vendors_words(provider: str, finish: Finish, stream: bool) -> None:
    if provider in ("cohere", "mistral") and finish == "content_filter":
        finish = "length"  # These vendors have no such end.
    reading = read_by_sdk(FAKES[provider], Story(text="Hi", finish=finish), stream=stream)
    assert (reading.choices[0].text, reading.choices[0].finish) == ("Hi", finish)


@pytest.mark.parametrize(
    ("provider", "status", "raised"),
    [
        ("anthropic", 401, anthropic.AuthenticationError),
        ("anthropic", 429, anthropic.RateLimitError),
        ("anthropic", 529, anthropic.InternalServerError),
        ("bedrock", 400, ClientError),
        ("bedrock", 429, ClientError),
        ("google", 429, errors.ClientError),
        ("google_vertex", 503, errors.ServerError),
        ("cohere", 429, ApiError),
        ("mistral", 401, SDKError),
        ("mistral", 422, HTTPValidationError),
        *((vendor, 429, openai.RateLimitError) for vendor in LOOKALIKES),
    ],
)
def test_failure__of_any_status__raised_by_the_sdk(
    server: DialectServer, provider: str, status: int, raised: type[Exception]
) -> None:
    fake = FAKES[provider]
    server.play("s", fails(fake, status, "no such luck", retry_after=7))
    with pytest.raises(raised) as caught:
        ask(fake.credentials(server.base_url("s")))
    assert "no such luck" in f"{caught.value} {getattr(caught.value, 'body', '')}"


@pytest.mark.parametrize(
    ("provider", "raised", "words"),
    [
        ("anthropic", anthropic.APIStatusError, "fell over"),
        ("bedrock", EventStreamError, "fell over"),
        ("google", errors.ServerError, "fell over"),
        ("google_vertex", errors.ServerError, "fell over"),
        ("mistral", Exception, "validation failed"),  # The SDK knows no error in a stream.
        *((vendor, openai.APIError, "fell over") for vendor in LOOKALIKES),
    ],
)
@pytest.mark.parametrize("story", [Story(), Story(text="Hello")], ids=["first", "behind text"])
def test_error_in_a_stream__of_any_place__raised_by_the_sdk(
    server: DialectServer, provider: str, story: Story, raised: type[Exception], words: str
) -> None:
    fake = FAKES[provider]
    server.play("s", breaks(fake, story, "fell over"))
    with pytest.raises(raised, match=words):
        ask(fake.credentials(server.base_url("s")), stream=True)
