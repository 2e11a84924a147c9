"""Streams and whole answers that vendors write badly leave well-formed on every surface: ids, types and names of calls
stand once, arguments are a JSON text, and data of several lines parses."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai._streaming import SSEDecoder

from integrations.providers.native import native_adapter
from integrations.providers.openai.dialect import Dialect
from integrations.registry import adapter_for, providers
from tests.fakes.dialects.bedrock import frame
from tests.fakes.dialects.story import Call, Story
from tests.gateway.native import canonical
from tests.gateway.surfaces.golden.answers import STREAMED, WHOLE, chat_payloads
from tests.gateway.surfaces.golden.order import CHECKS
from tests.gateway.surfaces.golden.streams import DIALECTS, REQUEST_ID, SURFACES, encoded, request_of, translator_of
from tests.integrations.adapters.subject import CLOCK, WEATHER, subject_of

Json = dict[str, Any]

OF_OPENAI = [name for name in providers() if isinstance(adapter_for(name).traits, Dialect)]
SURFACE = pytest.mark.parametrize("surface", ["chat", "responses", "messages"])
ABSENT = object()
USAGE = {"prompt_tokens": 21, "completion_tokens": 9, "total_tokens": 30}
NOTHING = (ABSENT, None, "", "  ")
"""How vendors write the arguments of a call without parameters, beside `{}` as a text and as an object."""


@dataclass(frozen=True)
class Written:
    """A call of a stream: `pieces` are the arguments of its deltas."""

    id: str
    name: str
    pieces: tuple[Any, ...]

    @property
    def arguments(self) -> str:
        text = "".join(json.dumps(one) if isinstance(one, dict) else one for one in self.pieces if is_text(one))
        return canonical(text if text.strip() else "{}")


def is_text(piece: Any) -> bool:
    return piece is not ABSENT and piece is not None


@dataclass(frozen=True)
class Habits:
    """A vendor's way to write calls: the fields that it repeats in each delta, and how it numbers the calls."""

    repeats_id: bool
    repeats_name: bool
    repeats_type: bool
    first_index: int | None
    gives_ids: bool


_pieces = st.one_of(
    st.sampled_from([(one,) for one in (*NOTHING, "{}", {}, {"city": "Oslo"})]),
    st.tuples(st.sampled_from(NOTHING), st.sampled_from(NOTHING)),
    st.builds(
        lambda text, cuts: tuple(text[start:end] for start, end in pairwise([0, *sorted(cuts), len(text)])),
        st.sampled_from(['{"city": "Oslo"}', '{"at": [1, {"b": "}{"}]}', "{}"]),
        st.lists(st.integers(0, 16), max_size=4),
    ),
)
_names = st.sampled_from(["get_weather", "get_time"])
_calls = st.lists(st.tuples(_names, _pieces), min_size=1, max_size=3).map(
    lambda found: [Written(f"call_{number}", name, pieces) for number, (name, pieces) in enumerate(found)]
)
_habits = st.builds(
    Habits, st.booleans(), st.booleans(), st.booleans(), st.sampled_from([0, 0, 1, None]), st.just(True)
) | st.builds(Habits, st.just(False), st.booleans(), st.booleans(), st.sampled_from([0, 1]), st.just(False))


def deltas_of(number: int, call: Written, habits: Habits) -> Iterator[Json]:
    for place, piece in enumerate(call.pieces):
        function: Json = {} if piece is ABSENT else {"arguments": piece}
        delta: Json = {"function": function}
        if habits.first_index is not None:
            delta["index"] = habits.first_index + number
        if (not place or habits.repeats_id) and habits.gives_ids:
            delta["id"] = call.id
        if not place or habits.repeats_type:
            delta["type"] = "function"
        if not place or habits.repeats_name:
            function["name"] = call.name
        yield delta


def chunk(delta: Json, finish: str | None = None, **more: Any) -> bytes:
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    fields = {"id": "c1", "object": "chat.completion.chunk", "created": 1_790_000_000, "model": "m", "choices": choices}
    fields |= more
    return b"data: %b\n\n" % json.dumps(fields).encode()


def stream_of(calls: list[Written], habits: Habits) -> list[bytes]:
    deltas = [delta for number, call in enumerate(calls) for delta in deltas_of(number, call, habits)]
    return [
        chunk({"role": "assistant"}),
        *(chunk({"tool_calls": [delta]}) for delta in deltas),
        chunk({}, "tool_calls", usage=USAGE),
        b"data: [DONE]\n\n",
    ]


def read(surface: str, frames: bytes) -> tuple[tuple[str, str], ...]:
    """Returns the calls as the client's SDK has them. Asserts that the events are in the protocol's order."""
    if surface in CHECKS:
        CHECKS[surface](frames)
    return STREAMED[surface](frames).calls


@SURFACE
@given(provider=st.sampled_from(OF_OPENAI), calls=_calls, habits=_habits, text=st.sampled_from(["", "Done."]))
def test_calls__streamed_badly__are_as_they_were_meant(
    surface: str, provider: str, calls: list[Written], habits: Habits, text: str
) -> None:
    *events, finish, done = stream_of(calls, habits)
    pieces = [*events, *([chunk({"content": text})] if text else []), finish, done]

    frames = encoded(surface, translator_of(subject_of(provider)), pieces)

    assert read(surface, frames) == tuple((call.name, call.arguments) for call in calls)


@given(provider=st.sampled_from(OF_OPENAI), calls=_calls, habits=_habits)
def test_calls__streamed_badly__have_id_type_and_name_in_their_first_delta_alone(
    provider: str, calls: list[Written], habits: Habits
) -> None:
    frames = encoded("chat", translator_of(subject_of(provider)), stream_of(calls, habits))

    deltas: dict[int, list[Json]] = {}
    for payload in chat_payloads(frames):
        for delta in payload["choices"][0]["delta"].get("tool_calls") or ():
            deltas.setdefault(delta["index"], []).append(delta)
    assert sorted(deltas) == list(range(len(calls)))
    for first, *others in deltas.values():
        assert not first["function"]["arguments"].isspace()
        assert first["id"]
        assert (first["type"], first["function"]["name"]) == ("function", calls[first["index"]].name)
        assert isinstance(first["function"]["arguments"], str)
        assert all("id" not in one and "type" not in one and "name" not in one["function"] for one in others)
    ids = [found[0]["id"] for found in deltas.values()]
    assert len(set(ids)) == len(ids)
    assert not habits.gives_ids or ids == [call.id for call in calls]


@SURFACE
@given(provider=st.sampled_from(OF_OPENAI), calls=_calls)
def test_calls__in_a_whole_answer__have_arguments_that_are_json(
    surface: str, provider: str, calls: list[Written]
) -> None:
    subject = subject_of(provider)
    answer = json.loads(subject.fake.whole(Story(text="Look.", finish="tool_calls")).body)
    answer["choices"][0]["message"]["tool_calls"] = [whole_call(call) for call in calls]

    completion = subject.adapter.parse_response(subject.request(), json.dumps(answer).encode()).body

    found = WHOLE[surface](SURFACES[surface].answer(request_of(surface), completion, REQUEST_ID))
    assert found.calls == tuple((call.name, call.arguments) for call in calls)
    for call in json.loads(completion)["choices"][0]["message"]["tool_calls"]:
        assert isinstance(call["function"]["arguments"], str)


def whole_call(call: Written) -> Json:
    function: Json = {"name": call.name}
    texts = [one for one in call.pieces if is_text(one)]
    if texts:
        function["arguments"] = texts[0] if len(texts) == 1 else "".join(texts)
    elif call.pieces[0] is None:
        function["arguments"] = None
    return {"id": call.id, "type": "function", "function": function}


@SURFACE
@pytest.mark.parametrize("dialect", DIALECTS)
def test_call__without_parameters_in_any_dialect__has_an_empty_object(surface: str, dialect: str) -> None:
    subject = subject_of(DIALECTS[dialect])
    calls = (Call("callAAA01", "get_time", {}), Call("callBBB02", "get_weather", {}))
    story = Story(calls=calls if subject.fake.can.parallel_tools else calls[:1], finish="tool_calls")

    streamed = read(surface, encoded(surface, translator_of(subject), subject.fake.stream(story).events))
    request = subject.request(tools=[WEATHER, CLOCK])
    completion = subject.adapter.parse_response(request, subject.fake.whole(story).body).body
    whole = WHOLE[surface](SURFACES[surface].answer(request_of(surface), completion, REQUEST_ID)).calls

    assert streamed == whole == tuple((call.name, "{}") for call in story.calls)


def in_several_lines(event: bytes, line_end: bytes) -> bytes:
    """Returns the event with its JSON written in several lines, each of which is a field `data`."""
    *names, data = event.strip().splitlines()
    text = data.removeprefix(b"data: ")
    if not text.startswith(b"{"):
        return event
    lines = json.dumps(json.loads(text), indent=1, ensure_ascii=False).encode().split(b"\n")
    return line_end.join([*names, *(b"data: " + line for line in lines), b"", b""])


@SURFACE
@given(
    line_end=st.sampled_from([b"\n", b"\r\n", b"\r"]),
    provider=st.sampled_from(OF_OPENAI) | st.sampled_from(["mistral", "anthropic", "cohere", "google"]),
)
def test_event__in_several_lines__leaves_well_formed(surface: str, line_end: bytes, provider: str) -> None:
    subject = subject_of(provider)
    calls = (Call("callAAA01", "get_weather", {"city": "Oslo"}),)
    story = Story(text="Grüße 👋", calls=calls, finish="tool_calls")
    events = subject.fake.stream(story).events
    several = [in_several_lines(event, line_end) for event in events]
    assert several != list(events)

    frames = encoded(surface, translator_of(subject), several)

    for event in SSEDecoder().iter_bytes(iter([frames])):
        assert event.data == "[DONE]" or isinstance(json.loads(event.data), Mapping)
    assert read(surface, frames) == (("get_weather", canonical({"city": "Oslo"})),)
    assert STREAMED[surface](frames).text == "Grüße 👋"


LINE_END = pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])


def relayed(provider: str, surface: str, pieces: list[bytes]) -> bytes:
    """Returns the events of a stream in the client's own protocol, as the pipeline forwards them."""
    adapter = native_adapter(provider, surface)
    assert adapter is not None
    stream = adapter.stream(subject_of(provider).request(stream=True))
    events = [event for piece in pieces for event in stream.feed(piece)] + stream.closing()
    return b"".join(event.data + b"\n\n" for event in events)


@LINE_END
@pytest.mark.parametrize(("provider", "surface"), [("anthropic", "messages"), ("openai", "responses")])
def test_event__in_several_lines_and_forwarded__leaves_well_formed(
    provider: str, surface: str, line_end: bytes
) -> None:
    subject = subject_of(provider)
    story = Story(text="Grüße 👋")
    own = encoded(surface, translator_of(subject), subject.fake.stream(story).events).split(b"\n\n")[:-1]

    frames = relayed(provider, surface, [in_several_lines(event, line_end) for event in own])

    CHECKS[surface](compact(frames))
    assert STREAMED[surface](compact(frames)).text == "Grüße 👋"


def compact(frames: bytes) -> bytes:
    """Returns the events with data of one line, as a client reads them."""
    read = SSEDecoder().iter_bytes(iter([frames]))
    data = [(event.event or "", json.dumps(json.loads(event.data), separators=(",", ":"))) for event in read]
    return "".join(f"event: {name}\ndata: {text}\n\n" for name, text in data).encode()


@LINE_END
def test_event__of_bedrocks_frames_in_several_lines__leaves_well_formed(line_end: bytes) -> None:
    subject = subject_of("anthropic")
    headers = {":message-type": "event", ":event-type": "chunk"}
    frames = []
    for event in subject.fake.stream(Story(text="Grüße 👋")).events:
        fields = json.loads(event.partition(b"data: ")[2])
        data = json.dumps(fields, indent=1).encode().replace(b"\n", line_end)
        frames.append(frame(headers, {"bytes": base64.b64encode(data).decode()}))

    assert STREAMED["messages"](compact(relayed("bedrock", "messages", frames))).text == "Grüße 👋"
