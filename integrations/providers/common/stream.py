"""The base of the stream translators: it takes bytes, returns events for the client, and keeps one failure.

A dialect adds the translation of its events (`_event`), the end of the stream (`_last_events`), and the detection of an
error in a body that came in place of a stream (`_error_in`).
"""

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
from integrations.providers.errors import FailureKind, NotAStreamError, ProviderError, unusable
from integrations.providers.given import NOTHING_GIVEN
from integrations.providers.usage import Usage

DONE = b"[DONE]"
"""The data of the event that ends a stream of OpenAI's dialect; proxies also add it to streams of other dialects."""
_MAX_HEAD_BYTES = 64 * 1024
_MAX_BLANKS = 64
# The streams of some vendors differ from chunk to chunk by more than the text.
_MAX_LEARNED = 8
_decode = lenient(msgspec.json.Decoder(dict[str, Any]).decode)

Event = TypeVar("Event")
Event_co = TypeVar("Event_co", covariant=True)


class Parser(Protocol[Event_co]):
    """Cuts a stream into events. `feed`, its iterator and `flush` raise UnreadableStreamError."""

    def feed(self, data: bytes) -> Iterable[Event_co]: ...

    def flush(self) -> Iterable[Event_co]: ...

    def single(self, data: bytes, begin: bytes = ..., /) -> bytes:
        """The payload of `data` if that is certainly one event; else no bytes. Consumes nothing."""
        ...


class DialectStream(ABC, Generic[Event]):
    """The base of a dialect's `StreamTranslator`.

    A caller that finds `usage` None at the end may set an estimate before `closing()`. The call after good events
    raises a failure behind them, so that no event before it is lost. The failure carries the usage reported so far,
    which is billed, and no secret.
    """

    has_plain = False
    """Whether a dialect has a `_plain_text`."""

    __slots__ = (
        "_after",
        "_before",
        "_done",
        "_failure",
        "_head",
        "_learned",
        "_parser",
        "_redact",
        "_seen",
        "finish_reason",
        "given",
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
        self.given = NOTHING_GIVEN
        self._parser = parser
        self._redact = redact
        self._failure: ProviderError | None = None
        # `_head` keeps the bytes before the first event, which may be no stream at all: all of a JSON object.
        self._head = bytearray()
        # `_seen` is True when an event of the dialect has come, after which the first bytes are no longer needed.
        self._seen = False
        # A chunk that begins with `_before` and ends with `_after` is plain, with its text in between; both are empty
        # until a plain chunk has come.
        self._before = self._after = b""
        self._learned = 0
        self._done = False  # `_done` is True when the stream's end was announced, after which events are ignored.

    def feed(self, data: bytes) -> list[StreamEvent]:
        if self._failure is not None:
            raise self._failure
        self._before = self._after = b""
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

    def plain(self, data: bytes) -> str:
        before, after = self._before, self._after
        begin, end = len(before), len(data) - len(after)
        if begin and data[:begin] == before and data[end:] == after:
            # All but the text is that of a plain chunk, and nothing was fed since then.
            try:
                text = data[begin:end].decode()
            except UnicodeDecodeError:
                return ""
            # Characters that are not printable may be such as JSON does not allow in a text.
            if text.isprintable() and '"' not in text and "\\" not in text:
                return text
        if self._failure is not None or self._done or not self._seen:
            return ""
        text = self._plain_text(data)
        if text and self._learned < _MAX_LEARNED:
            self._learn(data, text)
        return text

    def _plain_text(self, data: bytes) -> str:
        return ""

    def _learn(self, data: bytes, text: str) -> None:
        self._learned += 1
        before, _, after = data.partition(b'"%b"' % text.encode())
        before, after = before + b'"', b'"' + after
        # The text may stand elsewhere in the chunk too, or in another form: another one in its place shows it.
        other = text + "."
        if self._plain_text(before + other.encode() + after) == other:
            self._before, self._after = before, after

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
    def _event(self, event: Event, out: list[StreamEvent]) -> None: ...

    @abstractmethod
    def _last_events(self, out: list[StreamEvent]) -> None: ...

    def _check_ended(self, is_ended: object) -> None:
        if not self._seen:
            raise self._not_a_stream()
        if not is_ended:
            raise self._unusable("the stream ended before its end was announced")

    def _not_a_stream(self) -> ProviderError:
        """The failure behind a 200 without events: some servers answer with JSON instead."""
        try:
            head = bytes(self._head)
            decoded = _decode(head)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return self._unusable("the stream ended without an answer")
        message = "the provider did not answer with a stream"
        return self._error_in(decoded) or NotAStreamError(message, provider=self.provider, body=head)

    def _error_in(self, decoded: dict[str, Any]) -> ProviderError | None:
        if decoded.get("error") or isinstance(decoded.get("message"), str):
            return failure_in_body(decoded, provider=self.provider)
        return None

    def _unusable(self, message: str) -> ProviderError:
        return unusable(scrub(message), self.provider)

    def _with_usage(self, error: ProviderError) -> ProviderError:
        error.usage = error.usage or self.usage
        self._redact(error)
        return error
