"""Panels: the parts of a page that ask the stores. Each has two seconds to come with the page.

A page is one streamed response: its frame goes out at once, then the panels in page order, loaded side by side. A late
panel leaves a grey line; its load goes on, and the page's script asks again. A failed one leaves a message. Both have a
link for people without scripts, and do not affect other panels.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar
from uuid import uuid4

from django.db import connections
from django.http import HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.html import format_html

from core.errors import ApplicationError, ServiceUnavailableError
from core.http.exception_handler import log_unexpected, translate
from core.ui.attempts import Attempt, Attempts
from core.ui.freshness import clock

logger = logging.getLogger("core.pages")

Result = TypeVar("Result")

PANEL_SECONDS = 2.0
# The time for which the first byte of a page may wait for a store, so that the whole page comes within three seconds.
FIRST_BYTE_SECONDS = 0.5

# A page has some ten panels, which mostly wait for a store.
_threads = ThreadPoolExecutor(max_workers=16, thread_name_prefix="panel")
_attempts = Attempts(_threads)
_PARAMETER = "panel"
_NOT_AVAILABLE = "Not available now."


@dataclass(frozen=True, slots=True)
class Panel:
    name: str
    title: str
    template: str
    load: Callable[[], Mapping[str, Any]]
    # The panel takes the whole width of a grid.
    is_wide: bool = False
    # Seconds after which the panel is loaded again while the page is open; 0 for never.
    refresh_seconds: int = 0
    # The panel shows figures of the request log, which may lack the latest requests.
    is_of_log: bool = False

    @classmethod
    def of_table(cls, name: str, title: str, load: Callable[[], Any], **more: Any) -> Panel:
        return cls(name, title, "panels/table.html", lambda: {"table": load()}, **more)


def in_thread(function: Callable[[], Result]) -> Future[Result]:
    """Starts a function beside the request. It must not use the SQL database, whose connection is bound to its
    thread.
    """
    return _threads.submit(function)


def within_limit(future: Future[Result], otherwise: Result) -> Result:
    try:
        return future.result(timeout=FIRST_BYTE_SECONDS)
    except (ApplicationError, TimeoutError):
        return otherwise


def panel_name(request: HttpRequest) -> str | None:
    return request.GET.get(_PARAMETER)


def forget_attempts(request: HttpRequest) -> None:
    _attempts.forget(_session(request))


def marker(name: str) -> str:
    return f"<!--panel:{name}-->"


def panel_response(request: HttpRequest, panel: Panel, shared: Mapping[str, Any]) -> HttpResponseBase:
    return PanelStream([], [panel], [""], request, shared)


def page_response(
    request: HttpRequest, page: str, panels: Sequence[Panel], shared: Mapping[str, Any]
) -> HttpResponseBase:
    """Streams `page` with the panels in place of their markers.

    All panels see the context `shared`. Raises ValueError for a panel that the page lacks.
    """
    texts, used, rest = [], [], page
    placed = sorted(((page.find(marker(panel.name)), panel) for panel in panels), key=lambda pair: pair[0])
    for place, panel in placed:
        if place < 0:
            raise ValueError(f"the page has no place for the panel {panel.name!r}")
        text, _, rest = rest.partition(marker(panel.name))
        texts.append(text)
        used.append(panel)
    return PanelStream(texts, used, [rest], request, shared)


class PanelStream(StreamingHttpResponse):
    """Under ASGI, panels load side by side in threads, with a time limit; without an event loop, one after another."""

    def __init__(
        self,
        texts: Sequence[str],
        panels: Sequence[Panel],
        rest: Sequence[str],
        request: HttpRequest,
        shared: Mapping[str, Any],
    ) -> None:
        self._texts = texts or [""] * len(panels)
        self._panels = panels
        self._rest = rest
        self._request = request
        self._render = partial(_rendered, request, shared)
        super().__init__(self._in_turn())

    async def __aiter__(self) -> AsyncIterator[bytes]:
        loads = [asyncio.ensure_future(self._in_thread(panel)) for panel in self._panels]
        try:
            for text, load in zip(self._texts, loads, strict=True):
                yield self.make_bytes(text)
                yield self.make_bytes(await load)
            for text in self._rest:
                yield self.make_bytes(text)
        finally:
            for load in loads:
                load.cancel()

    def _in_turn(self) -> Iterator[str]:
        pairs = zip(self._texts, self._panels, strict=True)
        for text, panel in pairs:
            yield text
            yield self._render(panel)
        yield from self._rest

    async def _in_thread(self, panel: Panel) -> str:
        attempt = _attempt(self._request, panel)
        running = _attempts.join(attempt, partial(self._alone, panel))
        try:
            # The load goes on when the page stops waiting for it.
            text = await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(running)), PANEL_SECONDS)
        except TimeoutError:
            logger.warning("panel.late name=%s", panel.name)
            return _late(self._request, panel)
        _attempts.taken(attempt)
        return text

    def _alone(self, panel: Panel) -> str:
        try:
            return self._render(panel)
        finally:
            # The thread's connections to the SQL database would otherwise stay open for as long as the process runs.
            connections.close_all()


def _attempt(request: HttpRequest, panel: Panel) -> Attempt:
    # What a form sent is part of its answer, which is another than the page at the same address.
    session = _session(request) if request.method == "GET" else ""
    zone = timezone.get_current_timezone_name()
    return Attempt(session or uuid4().hex, _address(request), zone, panel.name)


def _session(request: HttpRequest) -> str:
    session = getattr(request, "session", None)
    return str((session and session.session_key) or "")


def _address(request: HttpRequest) -> str:
    query = request.GET.copy()
    query.pop(_PARAMETER, None)
    return f"{request.path}?{query.urlencode()}"


def _rendered(request: HttpRequest, shared: Mapping[str, Any], panel: Panel) -> str:
    try:
        context = {**shared, "panel": panel, **panel.load()}
        return render_to_string(panel.template, context, request) + (_freshness(shared) if panel.is_of_log else "")
    except Exception as error:
        known = translate(error)
        if known is None:
            log_unexpected(error, str(getattr(request, "request_id", "")))
        return _problem(request, panel, known)


def _freshness(shared: Mapping[str, Any]) -> str:
    until = shared["visit"].complete_until
    if until is None:
        return ""
    return format_html(
        '<p class="muted">Complete up to {}: later requests are on their way to the request log.</p>', clock(until)
    )


def _problem(request: HttpRequest, panel: Panel, error: ApplicationError | None) -> str:
    context = {
        "panel": panel,
        "address": _address(request),
        "message": error.message if error is not None else _NOT_AVAILABLE,
        "may_pass": isinstance(error, ServiceUnavailableError),
    }
    return render_to_string("ui/problem.html", context)


def _late(request: HttpRequest, panel: Panel) -> str:
    return render_to_string("ui/late.html", {"panel": panel, "address": _address(request)})
