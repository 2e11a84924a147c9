"""Sorts recorded exchanges by their answers, and runs recorded answers through an adapter."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from unittest.mock import patch

from integrations.providers.base import Adapter, StreamEvent, StreamTranslator
from integrations.providers.common.failures import kind_of
from integrations.providers.errors import FailureKind, ProviderError
from tests.night import examples
from tests.recordings import Recording

_CUTS_OF_A_STREAM = examples(4, 12)
_MAX_CUTS = 400
_NOW = 1_800_000_000.0


@dataclass(frozen=True)
class Exchanges:
    """The recordings of a dialect: all of them, and those with a stream, with a whole answer, and with an error."""

    all: tuple[Recording, ...]
    streams: tuple[Recording, ...]
    whole: tuple[Recording, ...]
    errors: tuple[Recording, ...]


@dataclass(frozen=True)
class Replay:
    """The result of translating a recorded stream: the events, the error that ended them if any, and the translator."""

    events: list[StreamEvent]
    error: ProviderError | None
    stream: StreamTranslator


def exchanges_of(recordings: Iterable[Recording]) -> Exchanges:
    """Returns the recordings sorted by their answers."""
    everything = tuple(recordings)
    answered = [recording for recording in everything if recording.status == 200]
    return Exchanges(
        all=everything,
        streams=tuple(recording for recording in answered if recording.stream),
        whole=tuple(recording for recording in answered if not recording.stream),
        errors=tuple(recording for recording in everything if recording.status != 200),
    )


def replay(stream: StreamTranslator, pieces: Iterable[bytes]) -> Replay:
    """Returns the translation of the pieces; events from before an error are kept."""
    events: list[StreamEvent] = []
    try:
        for piece in pieces:
            events += stream.feed(piece)
        events += stream.closing()
    except ProviderError as error:
        return Replay(events, error, stream)
    return Replay(events, None, stream)


def cuts_of(recording: Recording) -> Iterator[list[bytes]]:
    """Yields the recorded body in pieces: first each byte alone, then cut at random places."""
    source, body = random.Random(recording.name), recording.body
    for number in range(_CUTS_OF_A_STREAM):
        count = len(body) - 1 if number == 0 else source.randint(1, min(len(body) - 1, _MAX_CUTS))
        cuts = sorted(source.sample(range(1, len(body)), count))
        yield [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]


def assert_same_however_cut(recording: Recording, new_stream: Callable[[], StreamTranslator]) -> None:
    """Asserts that the recorded stream gives the same events, error and usage wherever the network cuts it. The clock
    is stopped, since a translator writes the time into its chunks."""
    with patch("time.time", return_value=_NOW):
        whole = replay(new_stream(), [recording.body])
        for pieces in cuts_of(recording):
            cut = replay(new_stream(), pieces)
            assert cut.events == whole.events
            assert (cut.error and cut.error.message) == (whole.error and whole.error.message)
            assert cut.stream.usage == whole.stream.usage


def classified_failure(adapter: Adapter, recording: Recording) -> ProviderError:
    """Returns the adapter's reading of a recorded error. Asserts its kind, its provider and its status."""
    error = adapter.classify_failure(recording.status, recording.headers, recording.body)
    # Google and xAI answer a wrong key with the status of a wrong request.
    is_key = b"API key not valid" in recording.body or b"Incorrect API key provided" in recording.body
    assert error.kind is (FailureKind.CREDENTIALS if is_key else kind_of(recording.status))
    assert (error.provider, error.status) == (adapter.provider, recording.status)
    return error


def assert_retry_after(error: ProviderError, recording: Recording) -> None:
    """Asserts that the error has the waiting time of the recorded header, if there is one."""
    if "retry-after" in recording.headers:
        assert error.retry_after == float(recording.headers["retry-after"])
