"""WebSocket handshakes between a server and the application, which only ever denies them.

A server passes a handshake as a scope of type `websocket`. The application chooses the status of its answer if the
server has this extension: https://asgi.readthedocs.io/en/latest/extensions.html#websocket-denial-response
"""

from __future__ import annotations

from core.http.arrival import Application
from gateway.protocol.reply import Message, Receive, Scope, Send

DENIAL = "websocket.http.response"
"""The name of the extension."""


def denial_of(send: Send) -> Send:
    async def sent(message: Message) -> None:
        await send({**message, "type": f"websocket.{message['type']}"})

    return sent


def as_handshake(application: Application) -> Application:
    async def asked(scope: Scope, _receive: Receive, send: Send) -> None:
        async def connect() -> Message:
            return {"type": "websocket.connect"}

        async def sent(message: Message) -> None:
            await send({**message, "type": message["type"].removeprefix("websocket.")})

        await application({**scope, "type": "websocket", "extensions": {DENIAL: {}}}, connect, sent)

    return asked
