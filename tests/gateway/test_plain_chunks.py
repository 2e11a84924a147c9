"""A chunk that only adds text leaves as it came, without events made of it. Recorded streams, cut and damaged anywhere,
give the client the same bytes and the record the same values as when every chunk goes through the events."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.pipeline.call import OpenStream
from gateway.pipeline.context import AnswerState
from gateway.pipeline.respond import StreamedAnswer
from gateway.protocol import sse
from integrations.providers.base import ChatRequest, StreamTranslator
from integrations.providers.errors import ProviderError
from integrations.providers.native import native_adapter
from integrations.registry import adapter_for
from tests.fakes.replay import body_of
from tests.gateway.native import NATIVE
from tests.gateway.own_exchanges import own_exchanges
from tests.gateway.recorded import Recording, exchanges
from tests.night import examples
from tests.recordings import OPENAI_DIALECT

pytestmark = pytest.mark.recordings

OPERATIONS = {"anthropic.messages": "messages", "openai.responses": "responses"}


def translators(recording: Recording) -> list[tuple[StreamTranslator, bool]]:
    """Returns a new translator for each way in which a client may get plain chunks of the answer, and whether that is
    the client's own protocol."""
    request = ChatRequest(recording["model"], True, b"{}", {})
    native = native_adapter(recording["provider"], OPERATIONS.get(recording["api"], ""))
    made = [(adapter_for(recording["provider"]).stream(request), False)]
    made += [] if native is None else [(native.stream(request), True)]
    return [(translator, is_native) for translator, is_native in made if translator.has_plain]


EXCHANGES = [*own_exchanges(), *exchanges(OPENAI_DIALECT, "openai.responses", *NATIVE)]
STREAMS = [
    one for one in EXCHANGES if one["response"]["status"] == 200 and one["response"]["stream"] and translators(one)
]
CHAT = b"""\
data: {"id":"c-1","object":"chat.completion.chunk","created":9,"model":"m",\
"choices":[{"index":0,"delta":{"content":%b},"finish_reason":null}]}

"""
MESSAGES = b"""\
event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%b}}

"""
RESPONSES = b"""\
event: response.output_text.delta
data: {"type":"response.output_text.delta","item_id":"i","output_index":0,"content_index":0,"delta":%b}

"""
PROTOCOLS = [("openai", "", CHAT), ("anthropic", "messages", MESSAGES), ("openai", "responses", RESPONSES)]
TEXTS = (
    b'"a"',
    b'" word"',
    b'"\\u00e9"',
    '"Grüße 👋"'.encode(),
    b'"\\\\"',
    b'""',
    b'"data: "',
    b"null",
    b'"\xff"',
    b'"\t"',
)


class _Written:
    """A response of a server that refuses the pieces that come when `refuses` is True."""

    takes_pieces = True

    def __init__(self) -> None:
        self.refuses = False
        self.pieces: list[bytes] = []

    def write_piece(self, data: bytes) -> bool:
        if not self.refuses:
            self.pieces.append(data)
        return not self.refuses


@pytest.fixture(autouse=True)
def made_up_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a chunk without a time get the same one on both ways."""
    monkeypatch.setattr("integrations.providers.openai.shapes.time", SimpleNamespace(time=lambda: 1_700_000_000.0))


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


def seen(
    loop: asyncio.AbstractEventLoop,
    translator: StreamTranslator,
    pieces: Sequence[bytes],
    refused: frozenset[int],
    *,
    is_native: bool,
    relayed: bool,
) -> dict[str, Any]:
    """Returns what client and record see of the pieces, with the plain way (`relayed`) or without."""
    state = SimpleNamespace(answer=AnswerState(is_native=is_native), started=time.perf_counter())
    runtime = SimpleNamespace(deadlines=SimpleNamespace(total=1e9), answer_bytes=len(b"".join(pieces)) - 7, loop=loop)
    answer = StreamedAnswer(cast(Any, runtime), cast(Any, state), cast(Any, None), cast(Any, None))
    answer._heartbeat.stop()
    written = _Written()
    stream = answer._stream = OpenStream(cast(Any, None), cast(Any, None), translator, cast(Any, None))
    answer._write_piece, answer._plain, answer._ends_at = written.write_piece, translator.plain, float("inf")
    answer._framed = sse.relay_all if is_native else sse.frame_all
    take = answer._take_plain if relayed and translator.has_plain else answer._take
    error = ""
    try:
        for number, piece in enumerate(pieces):
            written.refuses = number in refused
            if not take(piece):
                answer._count_output(stream.events)
                state.answer.parts.append(answer._framed(stream.events))
        stream.events = translator.closing()
    except ProviderError as failure:
        error = f"{failure.kind} {failure} {failure.usage}"
    return {
        "written": written.pieces,
        "parts": state.answer.parts,
        "output_bytes": state.answer.output_bytes,
        "received": stream.received,
        "last": [event.data for event in stream.events],
        "usage": translator.usage,
        "model": translator.model,
        "finish": translator.finish_reason,
        "error": error,
    }


def cut(body: bytes, cuts: Sequence[int]) -> list[bytes]:
    """Returns the body in pieces of one event each, and cut at these positions too."""
    ends = [position + 2 for position in range(len(body)) if body.startswith(b"\n\n", position)]
    borders = sorted({0, len(body), *ends, *(one % (len(body) + 1) for one in cuts)})
    return [body[a:b] for a, b in pairwise(borders)]


DAMAGE = st.lists(st.tuples(st.integers(0, 1 << 20), st.sampled_from([b"", b"\r", b"\n", b'"', b"\\", b"\xff", b"x"])))
MANY = settings(
    max_examples=examples(100, 400), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@MANY
@given(
    recording=st.sampled_from(STREAMS),
    cuts=st.lists(st.integers(0, 1 << 20), max_size=6),
    damage=DAMAGE,
    refused=st.frozensets(st.integers(0, 30), max_size=3),
)
def test_plain_chunk__recorded_streams_cut_and_damaged__client_and_record_see_the_same(
    loop: asyncio.AbstractEventLoop,
    recording: Recording,
    cuts: list[int],
    damage: list[tuple[int, bytes]],
    refused: frozenset[int],
) -> None:
    body = body_of(recording["response"])
    for position, byte in damage:
        at = position % (len(body) + 1)
        body = body[:at] + byte + body[at + 1 :]
    pieces = cut(body, cuts)

    for with_relay, without in zip(translators(recording), translators(recording), strict=True):
        assert seen(loop, with_relay[0], pieces, refused, is_native=with_relay[1], relayed=True) == seen(
            loop, without[0], pieces, refused, is_native=with_relay[1], relayed=False
        )


@MANY
@given(
    protocol=st.sampled_from(PROTOCOLS),
    texts=st.lists(st.sampled_from(TEXTS), min_size=1, max_size=12),
    others=st.lists(st.tuples(st.integers(0, 11), st.integers(0, 400), st.sampled_from(TEXTS)), max_size=3),
    cuts=st.lists(st.integers(0, 1 << 20), max_size=2),
    refused=st.frozensets(st.integers(0, 12), max_size=2),
)
def test_plain_chunk__texts_between_odd_chunks__client_and_record_see_the_same(
    loop: asyncio.AbstractEventLoop,
    protocol: tuple[str, str, bytes],
    texts: list[bytes],
    others: list[tuple[int, int, bytes]],
    cuts: list[int],
    refused: frozenset[int],
) -> None:
    provider, operation, form = protocol
    events = [form % b'"first"', *(form % text for text in texts)]
    for number, position, inserted in others:
        event = events[number % len(events)]
        events[number % len(events)] = event[:position] + inserted + event[position:]
    pieces = cut(b"".join(events), cuts)
    request = ChatRequest("m", True, b"{}", {})

    def made() -> StreamTranslator:
        native = native_adapter(provider, operation)
        return adapter_for(provider).stream(request) if native is None else native.stream(request)

    is_native = bool(operation)
    assert seen(loop, made(), pieces, refused, is_native=is_native, relayed=True) == seen(
        loop, made(), pieces, refused, is_native=is_native, relayed=False
    )


@pytest.mark.parametrize(("provider", "operation", "form"), PROTOCOLS)
def test_plain_chunk__text_alone__is_taken_without_events(provider: str, operation: str, form: bytes) -> None:
    request = ChatRequest("m", True, b"{}", {})
    native = native_adapter(provider, operation)
    translator = adapter_for(provider).stream(request) if native is None else native.stream(request)
    translator.feed(form % b'"first"')

    assert translator.plain(form % b'" one"') == " one"
    assert translator.plain(form % '" zwei Grüße 👋"'.encode()) == " zwei Grüße 👋"
    assert translator.plain(form % b'"a \\"word\\""') == 'a "word"'
    assert translator.plain(form % b'"\xff"') == ""
    assert translator.plain((form % b'" one"')[:-1]) == ""
    assert translator.plain((form % b'" one"') * 2) == ""
