"""A request that has arrived whole, as the web worker hands it to an endpoint before it starts a task for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from gateway.protocol.reply import Receive, Scope, Send

Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class ArrivedRequest(Protocol):
    """A request whose body is complete. Either `answer` is called, or `start`, once.

    `on_change` is called when the client has left and when the server shuts down, until the response is complete.
    """

    scope: Scope
    memory: dict[str, Any]
    """What an endpoint has noted of the connection, for its next request."""
    on_change: Callable[[], None] | None

    def whole_body(self) -> bytes:
        """Returns the body, which a task that is started later still receives."""
        ...

    @property
    def takes_answer(self) -> bool:
        """True while an answer can be sent in one write."""
        ...

    def answer(self, head: bytes, body: bytes) -> None:
        """Sends the answer to a request that `takes_answer`, with status 200. `head` are the lines of all headers, each
        with its end, and the empty line behind them."""
        ...

    def start(self, application: Application) -> None:
        """Starts a task in which the application answers."""
        ...
