"""Whatever an answer says of its tokens, in every dialect and on every surface: none that holds something is shown or
recorded with 0 tokens, and what differs from the provider's own counts is marked as an estimate."""

from __future__ import annotations

import json
from random import Random

import httpx2
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from integrations.providers.native import native_adapter
from tests.fakes.dialects.registry import FAKES
from tests.fakes.scripted import Step
from tests.fakes.upstream import Connection, Received
from tests.gateway.cases.readers import Json, read_answer
from tests.gateway.every_provider import PROVIDERS
from tests.gateway.service import Gateway
from tests.gateway.stage import Stage, model_of
from tests.gateway.surfaces.golden.streams import REQUEST_ID, encoded, request_of, translator_of
from tests.gateway.surfaces.golden.streams import SURFACES as PROTOCOLS
from tests.gateway.surfaces.ways import WHOLE_AND_STREAMED, Way
from tests.gateway.wire import bearer
from tests.integrations.adapters.subject import subject_of
from tests.integrations.mutations.changes import COUNTS, Change
from tests.integrations.mutations.wire import STORIES, Seed, seed_of, seeds_of, written
from tests.waiting import TIMEOUT_SECONDS

STORY = STORIES[0]
COUNTED = (STORY.usage.prompt_tokens, STORY.usage.completion_tokens)
few = settings(
    max_examples=6,
    deadline=None,
    # A number chooses the change, and a smaller one is no simpler change.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def is_native(provider: str, surface: str) -> bool:
    adapter = native_adapter(provider, surface)
    return adapter is not None and adapter.serves(model_of(provider).partition("/")[2])


def told(provider: str, surface: str, *, stream: bool) -> Seed:
    """Returns the story as the provider tells it to the client of the surface."""
    if surface == "responses" and is_native(provider, surface):
        subject = subject_of(provider)
        if stream:
            body = encoded(surface, translator_of(subject), FAKES[provider].stream(STORY).events)
        else:
            completion = subject.adapter.parse_response(subject.request(), FAKES[provider].whole(STORY).body).body
            body = PROTOCOLS[surface].answer(request_of(surface), completion, REQUEST_ID)
        return seed_of(provider, surface, body, stream=stream)
    return next(seed for seed in seeds_of(provider, stream=stream) if seed.name == "fake-0")


def plays(provider: str, body: bytes, *, stream: bool) -> Step:
    headers = dict(FAKES[provider].stream(STORY).headers if stream else FAKES[provider].whole(STORY).headers)

    async def step(request: Received, connection: Connection) -> None:
        if stream:
            await connection.start_stream(200, headers)
            await connection.send_chunk(body)
            await connection.end_stream()
        else:
            await connection.send_whole(200, body, headers)

    return step


CASES = [
    (provider, surface)
    for surface in ("chat", "messages", "responses", "completions")
    for provider in PROVIDERS
    # The fakes have no completions of texts.
    if surface != "completions" or not is_native(provider, surface)
]


@WHOLE_AND_STREAMED
@pytest.mark.parametrize(("provider", "surface"), CASES)
@few
@given(change=st.sampled_from(COUNTS), number=st.integers(0, 2**32))
def test_answer__whatever_it_says_of_its_tokens__counted_or_marked(
    stage: Stage, provider: str, surface: str, stream: bool, change: Change, number: int
) -> None:
    seed = told(provider, surface, stream=stream)
    events = change(seed.copy(), seed.form, Random(number))
    stage.play(provider, plays(provider, written(seed.form, events), stream=stream))
    way = Way(surface, model_of(provider))

    response = (forwarded if is_native(provider, surface) else Way.ask)(way, stage.gateway, way.body(stream=stream))

    assert response.status_code == 200, response.text
    record = stage.gateway.record(response)
    counts = (record.prompt_tokens, record.completion_tokens)
    assert min(counts) > 0
    assert record.tokens_estimated or counts == COUNTED
    if not is_native(provider, surface):
        usage = usage_in(surface, response)
        assert shown(usage) == counts
        # The SDK for messages drops fields of the last event that it does not know.
        assert (b'"estimated":true' in response.content) is record.tokens_estimated


def forwarded(way: Way, gateway: Gateway, body: Json) -> httpx2.Response:
    """Returns the answer that its provider wrote, which the API's document does not describe when it is as odd."""
    url = f"{gateway.service.base_url()}{way.path()}"
    return httpx2.post(url, json=body, headers=bearer(gateway.key), timeout=TIMEOUT_SECONDS)


def usage_in(surface: str, response: httpx2.Response) -> Json:
    """Returns the usage as the vendor's SDK ends up with it."""
    if surface != "completions":
        return read_answer(surface, response).usage
    *_, last = [line for line in response.text.splitlines() if line not in ("", "data: [DONE]")]
    usage: Json = json.loads(last.removeprefix("data: "))["usage"]
    return usage


def shown(usage: Json) -> tuple[int, int]:
    if "prompt_tokens" in usage:
        return usage["prompt_tokens"], usage["completion_tokens"]
    cached = usage.get("cache_creation_input_tokens", 0) + usage.get("cache_read_input_tokens", 0)
    return usage["input_tokens"] + cached, usage["output_tokens"]
