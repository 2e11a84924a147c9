"""The base of every dialect's stream translator: it takes bytes, returns events for the client, and keeps one failure.
A dialect adds the translation of its events (`_event`), the end of the stream (`_last_events`), and the detection of an
error in a body that came in place of a stream (`_error_in`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from integrations.providers.base import StreamEvent
from integrations.providers.common.failures import failure_in_body
from integrations.providers.common.redaction import scrub
from integrations.providers.common.sse import UnreadableStreamError
from integrations.providers.common.surrogates import lenient
from integrations.providers.errors import FailureKind, NotAStreamError, ProviderError
from integrations.providers.usage import Usage

DONE = b"[DONE]"
"""The data of the event that ends a stream of OpenAI's dialect; proxies also add it to streams of other dialects."""
_MAX_HEAD_BYTES = 64 * 1024
_MAX_BLANKS = 64
_decode = lenient(msgspec.json.Decoder(dict[str, Any]).decode)

Event = TypeVar("Event")
Event_co = TypeVar("Event_co", covariant=True)


class Parser(Protocol[Event_co]):
    """Cuts a stream's bytes into events. Both methods raise UnreadableStreamError; the iterator that `feed` returns
    raises it too."""

    def feed(self, data: bytes) -> Iterable[Event_co]: ...

    def flush(self) -> Iterable[Event_co]: ...


class DialectStream(ABC, Generic[Event]):
    """The base of a dialect's `StreamTranslator`.

    A caller that finds `usage` None at the end may set an estimate before `closing()`. A failure behind good events is
    raised by the next call, so that no event before it is lost. It carries the usage that the provider has reported so
    far, which is billed anyway, and no secret.
    """

    __slots__ = (
        "_done",
        "_failure",
        "_head",
        "_parser",
        "_redact",
        "_seen",
        "finish_reason",
        "model",
        "provider",
        "usage",
    )

    def __init__(
        self, parser: Parser[Event], *, model: str, provider: str, redact: Callable[[ProviderError], None]
    ) -> None:
        self.model = model
        self.provider = provider
        self.finish_reason = ""
        self.usage: Usage | None = None
        self._parser = parser
        self._redact = redact
        self._failure: ProviderError | None = None
        # `_head` keeps the bytes before the first event, which may be no stream at all: all of a JSON object.
        self._head = bytearray()
        # `_seen` is True when an event of the dialect has come, after which the first bytes are no longer needed.
        self._seen = False
        self._done = False  # `_done` is True when the stream's end was announced, after which events are ignored.

    def feed(self, data: bytes) -> list[StreamEvent]:
        if self._failure is not None:
            raise self._failure
        if not self._seen and (len(self._head) < _MAX_HEAD_BYTES or self._head[:_MAX_BLANKS].lstrip()[:1] == b"{"):
            self._head += data
        out: list[StreamEvent] = []
        try:
            for event in self._parser.feed(data):
                if self._done:
                    break
                self._event(event, out)
        except ProviderError as error:
            self._failure = self._with_usage(error)
        except UnreadableStreamError as error:
            self._failure = self._with_usage(self._unusable(str(error)))
            self._failure.__cause__ = error
        if self._failure is not None and not out:
            raise self._failure
        return out

    def closing(self) -> list[StreamEvent]:
        if self._failure is not None:
            raise self._failure
        out: list[StreamEvent] = []
        try:
            self._flush(out)
            self._last_events(out)
        except ProviderError as error:
            self._failure = self._with_usage(error)
            raise
        return out

    def _flush(self, out: list[StreamEvent]) -> None:
        try:
            for event in self._parser.flush():
                if self._done:
                    break
                self._event(event, out)
        except ProviderError as error:
            # Half an event is UNUSABLE, and `_last_events` decides whether the stream was complete without it.
            if error.kind is not FailureKind.UNUSABLE:
                raise

    @abstractmethod
    def _event(self, event: Event, out: list[StreamEvent]) -> None:
        """Appends the client's events for one event of the provider. Raises ProviderError."""

    @abstractmethod
    def _last_events(self, out: list[StreamEvent]) -> None:
        """Appends the events that end the answer. Raises ProviderError when the stream ended before its terminator."""

    def _not_a_stream(self) -> ProviderError:
        """Returns the failure behind a 200 whose body holds no event: some servers answer with JSON instead."""
        try:
            head = bytes(self._head)
            decoded = _decode(head)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return self._unusable("the stream ended without an answer")
        message = "the provider did not answer with a stream"
        return self._error_in(decoded) or NotAStreamError(message, provider=self.provider, body=head)

    def _error_in(self, decoded: dict[str, Any]) -> ProviderError | None:
        """Returns the error that a decoded body or event reports, None when it reports none."""
        if decoded.get("error") or isinstance(decoded.get("message"), str):
            return failure_in_body(decoded, provider=self.provider)
        return None

    def _unusable(self, message: str) -> ProviderError:
        return ProviderError(scrub(message), kind=FailureKind.UNUSABLE, provider=self.provider, status=200)

    def _with_usage(self, error: ProviderError) -> ProviderError:
        error.usage = error.usage or self.usage
        self._redact(error)
        return error
