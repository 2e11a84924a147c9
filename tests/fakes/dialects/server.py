"""An upstream that plays any provider: its base URL is `/d/<script>`, and a script is a list of steps, the last of
which repeats.

The steps of `tests/fakes/scripted.py` that know no dialect (`hang`, `reset`, `hang_up`, `raw`…) serve here as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from tests.fakes.dialects.openai_responses import RESPONSES
from tests.fakes.dialects.rules.table import Refused
from tests.fakes.dialects.story import FakeDialect, ReadRequest, Reply, Story, Streamed
from tests.fakes.scripted import Script, ScriptedServer, Step
from tests.fakes.upstream import Connection, Received


def script_path(path: str) -> str:
    return "/" + path.split("/", 3)[3]


def read_request(fake: FakeDialect, received: Received) -> ReadRequest:
    """Raises AssertionError if the provider would refuse the request."""
    return _fake_at(fake, received).read(script_path(received.path), received.headers, received.body)


def _fake_at(fake: FakeDialect, received: Received) -> FakeDialect:
    is_for_responses = urlsplit(received.path).path.endswith("/responses")
    return RESPONSES.get(fake.provider, fake) if is_for_responses else fake


def answer_with(fake: FakeDialect, story: Story) -> Step:
    """Answers whole or streamed, as requested. A request that the provider would refuse gets its refusal."""

    async def step(received: Received, connection: Connection) -> None:
        try:
            wants_stream = read_request(fake, received).stream
        except Refused as refused:
            await _send_reply(connection, refused.reply)
            return
        except AssertionError as problem:
            await _send_reply(connection, fake.failure(400, f"not a request of this dialect: {problem}"))
            return
        asked = _fake_at(fake, received)
        if wants_stream:
            await _send_stream(connection, asked.stream(story))
        else:
            await _send_reply(connection, asked.whole(story))

    return step


def fails(fake: FakeDialect, status: int, message: str, *, retry_after: int | None = None) -> Step:
    async def step(received: Received, connection: Connection) -> None:
        await _send_reply(connection, fake.failure(status, message, retry_after=retry_after))

    return step


def breaks(fake: FakeDialect, story: Story, message: str) -> Step:
    """Streams a 200 with an error event: after the story, or first if the story is empty."""

    async def step(received: Received, connection: Connection) -> None:
        await _send_stream(connection, fake.stream_failure(story, message))

    return step


def stops(fake: FakeDialect, story: Story, after: int, *, end: str = "hang_up") -> Step:
    """Sends the first `after` events of the story's stream; `end` is "hang_up", "reset", "hang", or "end" of the
    body.
    """

    async def step(received: Received, connection: Connection) -> None:
        streamed = fake.stream(story)
        await connection.start_stream(headers=_plain(streamed.headers))
        for event in streamed.events[:after]:
            await connection.send_chunk(event)
        await _END[end](connection)

    return step


class DialectServer(ScriptedServer):
    """Serves scripts: `play(name, *steps)` sets the steps of `/d/<name>`."""

    def base_url(self, name: str) -> str:
        return f"{self.url}/d/{name}"

    def requests_of(self, name: str, fake: FakeDialect) -> list[ReadRequest]:
        return [read_request(fake, received) for received in self.script(name).received]

    def script(self, name: str) -> Script:
        return self.scripts[name]


async def _hang_up(connection: Connection) -> None:
    connection.hang_up()


async def _reset(connection: Connection) -> None:
    connection.reset()


_END = {
    "hang_up": _hang_up,
    "reset": _reset,
    "hang": Connection.wait_until_gone,
    "end": Connection.end_stream,
}


async def _send_reply(connection: Connection, reply: Reply) -> None:
    await connection.send_whole(reply.status, reply.body, _plain(reply.headers))


async def _send_stream(connection: Connection, streamed: Streamed) -> None:
    await connection.start_stream(headers=_plain(streamed.headers))
    for event in streamed.events:
        await connection.send_chunk(event)
    await connection.end_stream()


def _plain(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
