"""Panels: the parts of a page that ask the stores, each within two seconds.

A page is one streamed response: its frame goes out at once, the panels follow in the order of the page, loaded side by
side. A panel that fails or is late leaves a message and a link that tries it again; the others are not touched.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from asgiref.sync import sync_to_async
from django.db import connections
from django.http import HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from typing_extensions import override

from core.errors import ApplicationError
from core.http.exception_handler import log_unexpected, translate

logger = logging.getLogger("core.pages")

Result = TypeVar("Result")

PANEL_SECONDS = 2.0
# The time for which the first byte of a page may wait for a store, so that the whole page comes within three seconds.
FIRST_BYTE_SECONDS = 0.5

# A page has some ten panels, which mostly wait for a store.
_threads = ThreadPoolExecutor(max_workers=16, thread_name_prefix="panel")
_NOT_AVAILABLE = "Not available now."
_LATE = "Not available now: the answer took longer than 2 seconds."


@dataclass(frozen=True, slots=True)
class Panel:
    """One part of a page. `load` returns the context of `template`; it may raise errors of the application."""

    name: str
    title: str
    template: str
    load: Callable[[], Mapping[str, Any]]
    # The panel takes the whole width of a grid.
    is_wide: bool = False
    # Seconds after which the panel is loaded again while the page is open; 0 for never.
    refresh_seconds: int = 0

    @classmethod
    def of_table(
        cls, name: str, title: str, load: Callable[[], Any], *, is_wide: bool = False, refresh_seconds: int = 0
    ) -> Panel:
        """Returns a panel that shows the table which `load` returns."""
        return cls(name, title, "panels/table.html", lambda: {"table": load()}, is_wide, refresh_seconds)


def in_thread(function: Callable[[], Result]) -> Future[Result]:
    """Starts a function beside the request, as panels are loaded. It must not use the SQL database, whose connection is
    bound to its thread."""
    return _threads.submit(function)


def within_limit(future: Future[Result], otherwise: Result) -> Result:
    """Returns what was started by `in_thread`, or `otherwise` when that fails or takes longer than the first byte
    of a page may wait."""
    try:
        return future.result(timeout=FIRST_BYTE_SECONDS)
    except (ApplicationError, TimeoutError):
        return otherwise


def marker(name: str) -> str:
    """Returns the text that stands for a panel's content in the rendered page."""
    return f"<!--panel:{name}-->"


def panel_response(request: HttpRequest, panel: Panel, shared: Mapping[str, Any]) -> HttpResponseBase:
    """Returns the content of one panel alone, for another try and for refreshing."""
    return PanelStream([], [panel], [""], request, shared)


def page_response(
    request: HttpRequest, page: str, panels: Sequence[Panel], shared: Mapping[str, Any]
) -> HttpResponseBase:
    """Returns the response that streams `page` with the panels in the places of their markers.

    `shared` is the part of the context that all panels see. Raises ValueError for a panel that the page lacks.
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
    """The streamed response of a page.

    Under ASGI the panels are loaded side by side in threads, with a limit of time; a server without an event loop
    loads them one after another.
    """

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
        self._render = partial(_rendered, request, shared)
        super().__init__(self._in_turn())

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        loads = [asyncio.ensure_future(self._in_thread(panel)) for panel in self._panels]
        try:
            for text, panel, load in zip(self._texts, self._panels, loads, strict=True):
                yield self.make_bytes(text)
                yield self.make_bytes(await self._result(panel, load))
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

    def _in_thread(self, panel: Panel) -> Any:
        run = sync_to_async(self._alone, thread_sensitive=False, executor=_threads)
        return asyncio.wait_for(run(panel), PANEL_SECONDS)

    def _alone(self, panel: Panel) -> str:
        try:
            return self._render(panel)
        finally:
            # The thread's connections to the SQL database would otherwise stay open for as long as the process runs.
            connections.close_all()

    async def _result(self, panel: Panel, load: asyncio.Future[str]) -> str:
        try:
            return await load
        except TimeoutError:
            logger.warning("panel.late name=%s", panel.name)
            return _problem(panel, _LATE)


def _rendered(request: HttpRequest, shared: Mapping[str, Any], panel: Panel) -> str:
    try:
        context = {**shared, "panel": panel, **panel.load()}
        return render_to_string(panel.template, context, request)
    except Exception as error:
        known = translate(error)
        if known is None:
            log_unexpected(error, str(getattr(request, "request_id", "")))
        return _problem(panel, _message(known))


def _message(error: ApplicationError | None) -> str:
    return error.message if error is not None else _NOT_AVAILABLE


def _problem(panel: Panel, message: str) -> str:
    return render_to_string("ui/problem.html", {"panel": panel, "message": message})
