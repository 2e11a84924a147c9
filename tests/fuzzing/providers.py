"""The fifth entrance: the answers of providers. A scripted upstream plays a changed answer of every dialect."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import httpx2

from tests.fakes.dialects.registry import FAKES, distinct_providers
from tests.fakes.dialects.server import DialectServer
from tests.fakes.dialects.story import Call, FakeDialect, Story
from tests.fakes.scripted import Step
from tests.fakes.upstream import Connection, Received
from tests.fuzzing.entrances import JSON, Entrance, corpus_seeds
from tests.fuzzing.exchange import Answer, Finding, Sent, check, check_envelope
from tests.fuzzing.mutation import encoded, mutated_bytes, mutated_json
from tests.gateway.service import Gateway
from tests.gateway.stage import model_of
from tests.gateway.wire import ENDPOINT, read_stream
from tests.integrations.adapters.hostile import payload_of, with_text

# The statuses that a provider's fault may lead to: the provider failed, or no other provider is left.
FAILURES = frozenset({500, 503})
STORIES = {
    "text": Story(text="Hello there, dear reader"),
    "call": Story(text="Let me see.", calls=(Call("call_1", "look_up", {"city": "Oslo"}),), finish="tool_calls"),
    "long": Story(text="One word after the other. " * 20, pieces=24, finish="length"),
}


class ProviderAnswers(Entrance):
    name = "provider"

    def __init__(self, gateway: Gateway, client: httpx2.Client, upstream: DialectServer) -> None:
        super().__init__(gateway, client)
        self._upstream = upstream
        self._requests = 0

    def _seeds(self) -> list[Any]:
        every = [
            {"provider": provider, "story": story, "stream": stream}
            for provider in distinct_providers()
            if provider in FAKES
            for story in STORIES
            for stream in (False, True)
        ]
        return [*corpus_seeds(self.name), *every]

    def unchanged(self, seed: Any) -> Sent:
        fake = FAKES[seed["provider"]]
        self._play(seed, _pieces(fake, seed), 200)
        return self._request(seed)

    def changed(self, random: Random, seed: Any) -> Sent:
        fake = FAKES[seed["provider"]]
        donors = [_pieces(FAKES[other["provider"]], other) for other in random.sample(self.seeds, 3)]
        pieces = _changed_pieces(random, _pieces(fake, seed), [piece for donor in donors for piece in donor])
        status = 200 if random.random() < 0.8 else random.choice((201, 204, 302, 400, 404, 429, 500, 529, 599))
        self._play(seed, pieces, status)
        return self._request(seed)

    def send(self, sent: Sent) -> Answer:
        answer = super().send(sent)
        if not any(script.received for script in self._upstream.scripts.values()):
            raise Finding(f"the provider got no request: {answer.body[:300]!r}")
        return answer

    def judge(self, answer: Answer) -> None:
        """The result is an answer, a failure in its envelope, or a stream with at most one error at its end."""
        check(answer, allowed_failures=FAILURES)
        if not answer.headers.get("content-type", "").startswith("text/event-stream"):
            check_envelope(answer)
            return
        stream = read_stream(answer.body)
        if len(stream.errors) > 1 or (stream.errors and "error" not in stream.chunks[-1]):
            raise Finding(f"errors inside the stream: {stream.errors!r}")
        if any(error.get("code") == "internal_error" for error in stream.errors):
            raise Finding(f"an internal error: {stream.errors!r}")

    def _request(self, seed: Any) -> Sent:
        """Names a new model each time, because each model has its own circuit."""
        self._requests += 1
        body: dict[str, Any] = {
            "model": f"{model_of(seed['provider'])}-{self._requests}",
            "messages": [{"role": "user", "content": "hi"}],
            "stream": seed["stream"],
        }
        if seed["story"] == "call":
            body["tools"] = [{"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}]
        return Sent(path=ENDPOINT, headers=JSON, body=encoded(body))

    def _play(self, seed: Any, pieces: list[bytes], status: int) -> None:
        fake = FAKES[seed["provider"]]
        story = STORIES[seed["story"]]
        headers = fake.stream(story).headers if seed["stream"] else fake.whole(story).headers
        plain = {name.lower(): value for name, value in headers.items()}
        self._upstream.scripts.clear()
        self._upstream.play(seed["provider"], _says(pieces, status, plain, streamed=seed["stream"]))


def _pieces(fake: FakeDialect, seed: Any) -> list[bytes]:
    story = STORIES[seed["story"]]
    return list(fake.stream(story).events) if seed["stream"] else [fake.whole(story).body]


def _changed_pieces(random: Random, pieces: list[bytes], donors: list[bytes]) -> list[bytes]:
    way = random.random()
    at = random.randrange(len(pieces))
    payload = payload_of(pieces[at]) if len(pieces) > 1 else _json_or_none(pieces[at])
    if way < 0.6 and payload is not None:
        others = [found for donor in donors if (found := payload_of(donor)) is not None] or [payload]
        made = mutated_json(random, payload, others)
        changed = with_text(pieces[at], encoded(made)) if len(pieces) > 1 else encoded(made)
        return [*pieces[:at], changed, *pieces[at + 1 :]]
    if way < 0.85:
        return [*pieces[:at], mutated_bytes(random, pieces[at], donors), *pieces[at + 1 :]]
    shuffled = list(pieces)
    random.shuffle(shuffled)
    return random.choice([shuffled, pieces[:at], pieces[at:], [*pieces, *pieces], [*pieces, *donors]])


def _json_or_none(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None


def _says(pieces: list[bytes], status: int, headers: dict[str, str], *, streamed: bool) -> Step:
    async def step(received: Received, connection: Connection) -> None:
        if not streamed or status == 204:
            await connection.send_whole(status, b"" if status == 204 else b"".join(pieces), headers)
            return
        await connection.start_stream(status, headers)
        for piece in pieces:
            if piece:  # An empty chunk would end the stream.
                await connection.send_chunk(piece)
        await connection.end_stream()

    return step
