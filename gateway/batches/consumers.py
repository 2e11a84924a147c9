from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple

from django.conf import settings

from gateway.batches import files, jobs, message_batches
from gateway.batches.call import StoredCall
from gateway.batches.surfaces import BATCHES, FILES, MESSAGE_BATCHES, StoredObjectSurface
from gateway.errors import MethodNotAllowedError
from gateway.http.consumer import SharedConsumer
from gateway.pipeline.context import RequestState
from gateway.pipeline.run import Call, run
from gateway.pipeline.watch import ClientWatch
from gateway.protocol.identifiers import new_request_id
from gateway.protocol.reply import Receive, Reply, Scope, Send
from gateway.runtime.runtime import Runtime
from gateway.surfaces.reply import reply_of
from gateway.worker.current import current_runtime

Handler = Callable[[StoredCall], Awaitable[None]]


class StoredObjectConsumer(SharedConsumer):
    def __init__(self, surface: StoredObjectSurface, calls: Mapping[str, Handler], *, is_upload: bool = False) -> None:
        self.operation = surface.operation
        self._surface, self._calls, self._is_upload = surface, calls, is_upload
        self._reply = reply_of(surface)
        self._allow = ", ".join(calls).replace("GET", "GET, HEAD")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method, surface = scope["method"], self._surface
        reply = self._reply(send, new_request_id())
        reply.is_native = True
        handler = self._calls.get("GET" if method == "HEAD" else method)
        if handler is None:
            await reply.error(MethodNotAllowedError(f"Use {self._allow}", headers={"allow": self._allow}))
            return

        async def answer(runtime: Runtime, state: RequestState, reply: Reply, watch: ClientWatch) -> None:
            await handler(StoredCall(runtime, state, reply, watch, surface, scope, send))

        is_upload = self._is_upload and method == "POST"
        seconds = settings.GATEWAY_FILE_SECONDS if is_upload else settings.GATEWAY_BODY_SECONDS
        reply.call = Call(answer, seconds)
        await run(current_runtime(), scope["headers"], receive, reply)


class StoredPath(NamedTuple):
    pattern: str
    consumer: StoredObjectConsumer


_ID = "(?P<id>[^/]+)"
_MESSAGES = "messages/batches"

PATHS: Final = (
    StoredPath("files", StoredObjectConsumer(FILES, {"GET": files.list_files, "POST": files.upload}, is_upload=True)),
    StoredPath(f"files/{_ID}", StoredObjectConsumer(FILES, {"GET": files.show, "DELETE": files.delete})),
    StoredPath(f"files/{_ID}/content", StoredObjectConsumer(FILES, {"GET": files.content})),
    StoredPath("batches", StoredObjectConsumer(BATCHES, {"GET": jobs.list_batches, "POST": jobs.create})),
    StoredPath(f"batches/{_ID}", StoredObjectConsumer(BATCHES, {"GET": jobs.show})),
    StoredPath(f"batches/{_ID}/cancel", StoredObjectConsumer(BATCHES, {"POST": jobs.cancel})),
    StoredPath(
        _MESSAGES,
        StoredObjectConsumer(
            MESSAGE_BATCHES, {"GET": message_batches.list_batches, "POST": message_batches.create}, is_upload=True
        ),
    ),
    StoredPath(
        f"{_MESSAGES}/{_ID}",
        StoredObjectConsumer(MESSAGE_BATCHES, {"GET": message_batches.show, "DELETE": message_batches.delete}),
    ),
    StoredPath(f"{_MESSAGES}/{_ID}/results", StoredObjectConsumer(MESSAGE_BATCHES, {"GET": message_batches.results})),
    StoredPath(f"{_MESSAGES}/{_ID}/cancel", StoredObjectConsumer(MESSAGE_BATCHES, {"POST": message_batches.cancel})),
)
