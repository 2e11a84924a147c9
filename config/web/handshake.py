"""WebSocket handshakes between a server and the application, which only ever denies them.

A server asks about a handshake in a scope of type `websocket`. The status of its answer is up to the application where
the server has the extension for that
(https://asgi.readthedocs.io/en/latest/extensions.html#websocket-denial-response).
"""

from __future__ import annotations

from core.http.arrival import Application
from gateway.protocol.reply import Message, Receive, Scope, Send

DENIAL = "websocket.http.response"
"""The name of the extension."""


def denial_of(send: Send) -> Send:
    """Returns a function that sends the messages of an HTTP response as those of a denial."""

    async def sent(message: Message) -> None:
        await send({**message, "type": f"websocket.{message['type']}"})

    return sent


def as_handshake(application: Application) -> Application:
    """Returns what answers an HTTP request that is a handshake, for a server of HTTP alone."""

    async def asked(scope: Scope, _receive: Receive, send: Send) -> None:
        async def connect() -> Message:
            return {"type": "websocket.connect"}

        async def sent(message: Message) -> None:
            await send({**message, "type": message["type"].removeprefix("websocket.")})

        await application({**scope, "type": "websocket", "extensions": {DENIAL: {}}}, connect, sent)

    return asked
