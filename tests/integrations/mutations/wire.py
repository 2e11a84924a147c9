"""Takes answers apart into their events, so that these can be changed, and joins them again."""

from __future__ import annotations

import json
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import Any

from botocore.eventstream import EventStreamBuffer

from tests.fakes.dialects.bedrock import frame
from tests.fakes.dialects.registry import FAKES
from tests.fakes.dialects.story import Call, Story
from tests.recordings import EXPECTED, recordings_of

# Longer streams test nothing that shorter ones do not.
MAX_EVENTS = 60
STORIES = (
    Story(text="Grüße 👋 from here"),
    Story(
        text="I look.",
        calls=(Call("call_1", "get_weather", {"city": "Oslo"}), Call("call_2", "f", {})),
        finish="tool_calls",
    ),
    Story(text="Half an ans", finish="length"),
    Story(),
)


@dataclass
class Event:
    """An event. `name` is the line `event:` of a server-sent event, or the kind of a binary frame; `data` is decoded
    JSON, or a text that is no JSON (`[DONE]`)."""

    data: Any
    name: str = ""


@dataclass(frozen=True)
class Seed:
    """An answer to change. `form` is whole (one event), sse, frames (AWS) or array (Gemini's without SSE)."""

    provider: str
    name: str
    form: str
    events: tuple[Event, ...]

    def copy(self) -> list[Event]:
        return deepcopy(list(self.events))


@cache
def seeds_of(provider: str, *, stream: bool) -> tuple[Seed, ...]:
    """Returns recorded answers, if there are any, and answers of the provider's fake, which always exist."""
    own = [_fake_answer(provider, story, stream=stream) for story in STORIES if _has_abilities(provider, story)]
    recorded = [
        (recording.name, recording.body)
        for recording in recordings_of(*EXPECTED)
        if recording.provider == provider and recording.stream == stream and recording.status == 200
    ]
    seeds = [seed_of(provider, name, body, stream=stream) for name, body in [*own, *recorded]]
    return tuple(seed for seed in seeds if len(seed.events) <= MAX_EVENTS)


def written(form: str, events: Iterable[Event]) -> bytes:
    match form:
        case "whole":
            return b"".join(_json(event.data) for event in events)
        case "array":
            return b"[" + b",\n".join(_json(event.data) for event in events) + b"]"
        case "frames":
            return b"".join(_frame(event) for event in events)
        case _:
            return b"".join(_sse(event) for event in events)


def _fake_answer(provider: str, story: Story, *, stream: bool) -> tuple[str, bytes]:
    fake = FAKES[provider]
    body = b"".join(fake.stream(story).events) if stream else fake.whole(story).body
    return f"fake-{STORIES.index(story)}", body


def _has_abilities(provider: str, story: Story) -> bool:
    return FAKES[provider].can.tools or not story.calls


def seed_of(provider: str, name: str, body: bytes, *, stream: bool) -> Seed:
    if not stream:
        return Seed(provider, name, "whole", (Event(json.loads(body)),))
    if provider == "bedrock":
        return Seed(provider, name, "frames", tuple(_frames(body)))
    if body.lstrip()[:1] == b"[":
        return Seed(provider, name, "array", tuple(Event(one) for one in json.loads(body)))
    return Seed(provider, name, "sse", tuple(_events(body)))


def _frames(body: bytes) -> Iterable[Event]:
    buffer = EventStreamBuffer()
    buffer.add_data(body)
    for message in buffer:
        headers: dict[str, Any] = message.headers  # type: ignore[assignment]
        yield Event(json.loads(message.payload), str(headers[":event-type"]))


def _events(body: bytes) -> Iterable[Event]:
    for block in body.decode().replace("\r\n", "\n").split("\n\n"):
        name, data = "", []
        for line in block.split("\n"):
            if line.startswith("event:"):
                name = line[6:].strip()
            elif line.startswith("data:"):
                data.append(line[5:].removeprefix(" "))
        if data:
            yield Event(_decoded("\n".join(data)), name)


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _json(data: Any) -> bytes:
    return json.dumps(data, ensure_ascii=False).encode()


def _sse(event: Event) -> bytes:
    head = f"event: {event.name}\n".encode() if event.name else b""
    data = event.data.encode() if isinstance(event.data, str) else _json(event.data)
    return head + b"data: " + data + b"\n\n"


def _frame(event: Event) -> bytes:
    head = {":message-type": "event", ":event-type": event.name, ":content-type": "application/json"}
    return frame(head, event.data)
