from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from gateway.protocol.reply import Receive, Scope, Send

Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class ArrivedRequest(Protocol):
    """A request whose body is complete. Call either `answer` or `start`, once.

    `on_change` is called when the client has left and when the server shuts down, until the response is complete.
    """

    scope: Scope
    memory: dict[str, Any]
    """What an endpoint has noted of the connection, for its next request."""
    on_change: Callable[[], None] | None

    def whole_body(self) -> bytes: ...

    @property
    def takes_answer(self) -> bool: ...

    def answer(self, head: bytes, body: bytes) -> None:
        """Sends an answer with status 200 to a request that `takes_answer`.

        `head` are the lines of all headers, each with its end, and the empty line after them.
        """
        ...

    def start(self, application: Application) -> None: ...
