"""Calls of the service that survive a lost connection."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from prompt_gateway_client.errors import UnavailableError
from prompt_gateway_client.http import Answer, Http

# Without any answer for so long, a call is given up.
_PATIENCE_SECONDS = 60.0
_FIRST_WAIT_SECONDS, _MAX_WAIT_SECONDS = 0.5, 10.0
_PAGE = 1000


class Service:
    """Sends calls until there is an answer, the deadline is over, or there was none for a minute."""

    def __init__(self, http: Http, *, timeout: float, note: Callable[[str], None]) -> None:
        self.http, self._note = http, note
        self.deadline = time.monotonic() + timeout

    @property
    def seconds_left(self) -> float:
        return self.deadline - time.monotonic()

    def get(self, path: str, **query: str) -> dict[str, Any]:
        return self.call("GET", path, query=query).body

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        done: Callable[[], Answer | None] = lambda: None,
    ) -> Answer:
        """Returns the answer. Before a call is sent again, `done` looks whether the service has done it already, and
        returns the answer then. Raises PromptGatewayError for a refusal, UnavailableError for no answer."""
        return self.until_answered(lambda: self.http.send(method, path, query=query, body=body), done)

    def until_answered(self, send: Callable[[], Answer], done: Callable[[], Answer | None] = lambda: None) -> Answer:
        """Returns the answer of `send`; see `call`."""
        give_up = min(self.deadline, time.monotonic() + _PATIENCE_SECONDS)
        wait, was_sent = _FIRST_WAIT_SECONDS, False
        while True:
            try:
                found = done() if was_sent else None
                was_sent = True
                return found or send()
            except UnavailableError as error:
                if time.monotonic() + wait > give_up:
                    raise
                self._note(f"{error}. Trying again in {wait:g} seconds.")
            time.sleep(wait)
            wait = min(2 * wait, _MAX_WAIT_SECONDS)

    def listed(self, path: str, *, page: int = _PAGE, **query: str) -> Iterator[dict[str, Any]]:
        """Yields the entries of a list, page by page."""
        offset = 0
        while True:
            found = self.get(path, limit=str(page), offset=str(offset), **query)
            yield from found["results"]
            offset += len(found["results"])
            if not found["results"] or offset >= found["count"]:
                return
