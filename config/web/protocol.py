from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http import httptools_impl
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from config.web import refusals
from config.web.direct import DirectCycle
from config.web.guard import guard_of
from config.web.half_closed import HalfClosed
from config.web.handshake import as_handshake
from config.web.hosts import host_of_url, is_host, without_default_port
from config.web.response import OneWriteCycle
from core.errors import ApplicationError
from gateway.protocol.reply import RESPONSE_WRITER

logger = logging.getLogger("config.web")

# The connection of a refused peer stays open briefly: closing it while data arrives would discard the refusal.
_LINGER_SECONDS = 2.0


# A body mostly follows its head at once. One that does not is awaited by a task, which also watches its pace.
_HOLD_SECONDS = 0.02
# A larger body goes to its task as it arrives.
_HELD_BYTES = 1024 * 1024

# The states of a connection: what the peer has to send next. Plain integers, because each request compares them often.
_HEAD = 0
_BODY = 1
_NOTHING = 2  # The request is complete: its answer is under way, or the connection waits for the next request.
_REFUSED = 3  # Everything that arrives is discarded until the connection ends.


# The method is looked up once: `super()` in each call would cost as much as the check itself.
_on_message_begin = HttpToolsProtocol.on_message_begin
_on_headers_complete = HttpToolsProtocol.on_headers_complete
_on_body = HttpToolsProtocol.on_body
_on_message_complete = HttpToolsProtocol.on_message_complete


class _Trailers(list[tuple[bytes, bytes]]):
    """Receives the trailers of a chunked body, which no application gets: it already has the headers, `headers` in
    number. `limit` bounds both together."""

    headers = 0

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    def append(self, header: tuple[bytes, bytes], /) -> None:
        super().append(header)
        if self.headers + len(self) > self._limit:
            raise _too_many_headers(self._limit)


# uvicorn has no setting for the class of its responses.
httptools_impl.RequestResponseCycle = OneWriteCycle  # type: ignore[misc]
_OFFER = frozenset((b"upgrade", b"http2-settings"))
_NONE: Mapping[bytes, Any] = {}
Patterns = Sequence[tuple[re.Pattern[bytes], Any]]
_name_of = itemgetter(0)


class BoundedProtocol(HttpToolsProtocol):
    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._guard = guard_of(server_state, self.loop)
        self._limits = self._guard.limits
        self._stage = _HEAD
        self._since = self._guard.now
        # Bytes received since the last head or piece of a body ended; it grows while a head or trailer does not end.
        self._unread = 0
        self._trailers = _Trailers(self._limits.headers)
        # The endpoints to which requests go without the rest of the application, by the bytes of their URLs.
        is_plain = not self.root_path and self.limit_concurrency is None
        self._direct: Mapping[bytes, Any] = getattr(config.loaded_app, "direct", _NONE) if is_plain else _NONE
        # The endpoints whose URLs name a model, by the patterns of their URLs.
        self._direct_patterns: Patterns = getattr(config.loaded_app, "direct_patterns", ()) if is_plain else ()
        self.url = b""
        self.headers = []
        # The endpoint of a request that is held until its body is complete (`gateway.protocol.arrived`).
        self._held: Any = None
        self._memory: dict[str, Any] = {}
        # The headers of the last request that went to its endpoint directly, None before the first.
        self._headers_before: Any = None
        self._hold: asyncio.TimerHandle | None = None

    def data_received(self, data: bytes) -> None:
        if self._stage == _NOTHING:
            self._begin(_HEAD)
        elif self._stage == _REFUSED:
            return
        self._unread += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._pass_over_offer(data[upgrade.args[0] :])
        except httptools.HttpParserError as error:
            # What a callback raises ends the parsing, and is the context of the parser's own error.
            cause = error.__context__
            malformed = refusals.MalformedRequestError("This is not a valid HTTP/1.1 request")
            self._refuse(cause if isinstance(cause, ApplicationError) else malformed)
        else:
            if self._unread > self._limits.head_bytes and self._stage != _NOTHING:
                self._refuse(self._too_large())
            elif self._held is not None:
                self._go_on_holding()

    def on_message_begin(self) -> None:
        # uvicorn makes the scope here; `_make_scope` makes it when it is known that the request needs one.
        self.url = b""
        self.headers = []
        self.expect_100_continue = False
        if self._stage == _NOTHING:  # This request came in the same data as the one before it.
            self._begin(_HEAD)
            self._unread = 1

    def on_headers_complete(self) -> None:
        limits = self._limits
        if len(self.headers) > limits.headers or len(self.url) > limits.url_bytes or self._unread > limits.head_bytes:
            self._check_head()
        # Most clients send the same headers again, and those are not checked again.
        is_known = self.headers == self._headers_before
        if not is_known:
            # An HTTP/1.1 request has one Host header, which names a host (RFC 9112, section 3.2).
            names = list(map(_name_of, self.headers))
            if names.count(b"host") != 1 or not is_host(self.headers[names.index(b"host")][1]):
                self._check_host()
        number = len(self.headers)
        parser = self.parser
        endpoint = self._direct.get(self.url)
        if endpoint is None:
            endpoint = self._named_endpoint()
        if endpoint is not None and self._is_plain_post():
            if is_known:
                # An endpoint that knows the list need not read it again.
                self.headers = self._headers_before
            self._start_direct(endpoint)
        else:
            if not self.url.startswith(b"/"):
                self._check_target()
            self._make_scope()
            _on_headers_complete(self)
            self.scope["extensions"] = {RESPONSE_WRITER: self.cycle}  # type: ignore[dict-item]
        self._stage = _BODY
        self._since = self._guard.now
        self._unread = 0
        if not parser.should_upgrade():
            self._trailers.headers = number
            self.headers = self._trailers

    def on_body(self, body: bytes) -> None:
        self._unread = 0
        cycle = self.cycle
        if cycle.__class__ is not DirectCycle:
            _on_body(self, body)
        elif not cycle.response_complete:
            cycle.add_body(body)

    def on_message_complete(self) -> None:
        self._stage = _NOTHING
        if self._trailers:
            self._trailers.clear()
        cycle = self.cycle
        if cycle.__class__ is not DirectCycle:
            _on_message_complete(self)
        elif not cycle.response_complete:
            cycle.more_body = False
            held = self._held
            if held is None:
                cycle.note_arrival()
                return
            self._end_hold()
            if not held.begin(cycle):
                self._start_asgi_task(cycle, held)

    def on_response_complete(self) -> None:
        """Ends a response as uvicorn does, but without a timer for each: the guard closes idle connections."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        elif self._stage == _NOTHING:
            self._since = self._guard.now

    def eof_received(self) -> bool | None:  # type: ignore[override]  # uvicorn's closes the connection in every case
        if self._stage != _NOTHING or self.scheme == "https" or not HalfClosed.may_wait(self):
            return None
        HalfClosed(self)
        return True

    def _named_endpoint(self) -> Any:
        for pattern, endpoint in self._direct_patterns:
            if pattern.fullmatch(self.url) is not None:
                return endpoint
        return None

    def _is_plain_post(self) -> bool:
        parser = self.parser
        return parser.get_method() == b"POST" and parser.get_http_version() == "1.1" and not parser.should_upgrade()

    def _make_scope(self) -> None:
        url, headers, expects_continue = self.url, self.headers, self.expect_100_continue
        _on_message_begin(self)
        self.url, self.expect_100_continue = url, expects_continue
        self.scope["headers"] = self.headers = headers

    def _start_direct(self, endpoint: Any) -> None:
        scope: Any = {
            "type": "http",
            "http_version": "1.1",
            "method": "POST",
            "path": self.url.decode("ascii"),
            "headers": self.headers,
        }
        # The attribute is None before the first request, which uvicorn's types leave out.
        before: RequestResponseCycle | None = self.cycle
        cycle = DirectCycle(
            scope,
            self.transport,
            self.flow,
            self.logger,
            self.server_state.default_headers,
            self.on_response_complete,
            self._start_asgi_task,
            expects_continue=self.expect_100_continue,
            keep_alive=self.parser.should_keep_alive(),
        )
        cycle.memory, self._headers_before = self._memory, self.headers
        scope["extensions"] = {RESPONSE_WRITER: cycle}
        self.scope, self.cycle = scope, cycle
        if before is not None and not before.response_complete:
            self.flow.pause_reading()
            self.pipeline.appendleft((cycle, endpoint))
        elif self.expect_100_continue or not getattr(endpoint, "begins", False):
            self._start_asgi_task(cycle, endpoint)
        else:
            self._held = endpoint
            cycle.high_water = _HELD_BYTES

    def _go_on_holding(self) -> None:
        if isinstance(self.cycle, DirectCycle) and self.cycle.is_large:
            self._release()
        elif self._hold is None:
            self._hold = self.loop.call_later(_HOLD_SECONDS, self._release)

    def _release(self) -> None:
        held, cycle = self._held, self.cycle
        if held is not None:
            self._end_hold()
            if isinstance(cycle, DirectCycle):
                cycle.high_water = HIGH_WATER_LIMIT
            self._start_asgi_task(cycle, held)

    def _end_hold(self) -> None:
        self._held = None
        if self._hold is not None:
            self._hold.cancel()
            self._hold = None

    def connection_lost(self, exc: Exception | None) -> None:
        self._release()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        super().shutdown()
        cycle = self.cycle
        if cycle.__class__ is DirectCycle and cycle.on_change is not None:
            # A task can be cancelled when the time for draining is over.
            cycle.on_change()

    def look(self, now: float) -> None:
        stage, waited = self._stage, now - self._since - self._guard.grace_seconds
        if stage == _BODY:
            self._look_at_body(now, waited)
        elif self._answering():
            return
        elif stage == _HEAD:
            if waited > self._limits.head_seconds:
                self._give_up_head()
        elif waited > (self.timeout_keep_alive if stage == _NOTHING else _LINGER_SECONDS):
            self.transport.close()

    def _look_at_body(self, now: float, waited: float) -> None:
        if self.flow.read_paused:
            self._since = now  # The application is slow here, and not the peer.
        elif waited > self._limits.seconds_for_body(self.scope.get("path", "")):
            self._refuse(refusals.SlowRequestError("The request body did not arrive in time"))

    def _give_up_head(self) -> None:
        if self._unread:
            self._refuse(refusals.SlowRequestError("The head of the request did not arrive in time"))
        else:
            self.transport.close()

    def _begin(self, stage: int) -> None:
        self._stage = stage
        self._since = self._guard.now
        self._unread = 0

    def _answering(self) -> bool:
        cycle: RequestResponseCycle | None = (
            self.cycle
        )  # The attribute is None before the first request, which uvicorn's types leave out.
        return cycle is not None and not cycle.response_complete and not cycle.disconnected

    def _check_head(self) -> None:
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        limits = self._limits
        if len(self.url) > limits.url_bytes or len(self.headers) > limits.headers or size > limits.head_bytes:
            raise self._too_large()

    def _check_host(self) -> None:
        """Raises MalformedRequestError if the Host header is missing, repeated or not a host. HTTP/1.0 needs none."""
        hosts = [value for name, value in self.headers if name == b"host"]
        if len(hosts) > 1:
            raise refusals.MalformedRequestError("The request has more than one Host header")
        if hosts:
            raise refusals.MalformedRequestError("The Host header is not the name or address of a host")
        if self.parser.get_http_version() == "1.1":
            raise refusals.MalformedRequestError("The request has no Host header, which HTTP/1.1 needs")

    def _check_target(self) -> None:
        """Raises MalformedRequestError if the URL names another host than the Host header. Without that header, the
        application gets the URL's host (RFC 9112, section 3.2.2)."""
        host = host_of_url(self.url)
        if host is None:
            return
        named = dict(self.headers).get(b"host")
        if named is None:
            self.headers.append((b"host", host))
        elif without_default_port(host) != without_default_port(named):
            raise refusals.MalformedRequestError("The URL names another host than the Host header")

    def _too_large(self) -> ApplicationError:
        if len(self.url) > self._limits.url_bytes:
            return refusals.UrlTooLongError(f"The URL is longer than {self._limits.url_bytes} bytes")
        if len(self.headers) > self._limits.headers:
            return _too_many_headers(self._limits.headers)
        return refusals.HeadTooLargeError(f"The head of the request is larger than {self._limits.head_bytes} bytes")

    def _refuse(self, error: ApplicationError) -> None:
        self._release()
        client = self.client[0] if self.client else ""
        logger.warning("request.refused status=%d code=%s client=%s", error.status, error.code, client)
        in_body = self._stage == _BODY
        self._begin(_REFUSED)
        if not self._answering():
            # A body that is refused after the response to its request was sent gets no second response.
            self.transport.close() if in_body else self._write_response(refusals.as_bytes(error))
        elif not in_body:
            self.cycle.keep_alive = False  # The requests before this one are answered first.
        elif self.pipeline or self.cycle.response_started:
            self.transport.close()
        else:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            self._write_response(refusals.as_bytes(error))

    def _write_response(self, answer: bytes) -> None:
        self.transport.write(answer)
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        else:
            self.transport.close()

    def _should_upgrade(self) -> bool:
        # uvicorn calls this method for requests that offer another protocol, before the application gets them.
        return True

    def _pass_over_offer(self, rest: bytes) -> None:
        """Parses the request again without its offer of another protocol, such as HTTP/2, which a server may ignore.
        httptools takes the bytes after such a head for the other protocol, and the body for a new request."""
        self._begin(_HEAD)
        if self.scope["method"] == "CONNECT" or self._answering():
            self._refuse(refusals.MalformedRequestError("The connection cannot change to another protocol"))
        elif self.scope["method"] == "GET" and self._get_upgrade() == b"websocket":
            self.app = as_handshake(self.app)
            self._parse_again(b"")
            # Nothing else is asked in this way: the answer ends the connection.
            self.cycle.keep_alive = False
        else:
            self._parse_again(rest)

    def _parse_again(self, rest: bytes) -> None:
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self.data_received(without_offer(self.scope["method"].encode(), self.url, self.headers) + rest)


def _too_many_headers(limit: int) -> ApplicationError:
    return refusals.HeadTooLargeError(f"The request has more than {limit} headers")


def without_offer(method: bytes, url: bytes, headers: list[tuple[bytes, bytes]]) -> bytes:
    lines = [b"%s %s HTTP/1.1" % (method, url)]
    for name, value in headers:
        if name == b"connection":
            tokens = [token for token in value.lower().split(b",") if token.strip() not in _OFFER]
            lines.append(b"connection: " + b",".join(tokens))
        elif name not in _OFFER:
            lines.append(name + b": " + value)
    return b"\r\n".join([*lines, b"", b""])
