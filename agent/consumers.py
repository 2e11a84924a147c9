"""POST /api/agent/chat: a Channels consumer that answers with server-sent events.

Failures before the first event are JSON with a status, as in the management API; later ones are the event `error`.
"""

from __future__ import annotations

import asyncio
import uuid

from channels.consumer import AsyncConsumer
from django.conf import settings
from rest_framework.exceptions import MethodNotAllowed

from agent.refusals import refuse
from agent.turn.admission import AdmittedChat, begin_chat, read_call
from agent.turn.events import AnyEvent, ErrorEvent
from agent.turn.loop import Chat, ChatLoop
from agent.worker.leases import release_lease
from agent.worker.running import running
from agent.worker.threads import in_thread, to_the_end
from gateway.errors import RequestTimeoutError
from gateway.http.bodies import read_body
from gateway.pipeline.heartbeat import Heartbeat
from gateway.pipeline.parse import ClientGoneError
from gateway.pipeline.watch import ClientWatch
from gateway.protocol import sse
from gateway.protocol.reply import Receive, Reply, Scope, Send
from gateway.runtime.runtime import Runtime
from gateway.worker.current import current_runtime

_RESTARTING = "The service is restarting and stopped the agent; ask again."


class ChatConsumer(AsyncConsumer):  # type: ignore[misc]  # Channels has no types
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Replaces Channels' own loop, which waits for the handler of each message and so would notice only after the
        answer that the client left."""
        self.scope, self.base_send = scope, send
        runtime = current_runtime()
        self._reply = Reply(self.send, uuid.uuid4().hex)
        self._watch = ClientWatch(receive, runtime.loop, settings.GATEWAY_BODY_SECONDS)
        with running():
            try:
                await self._serve(runtime, receive)
            except ClientGoneError:
                return
            except asyncio.CancelledError:
                await self._broken_off()
            finally:
                self._watch.stop()

    async def _serve(self, runtime: Runtime, receive: Receive) -> None:
        try:
            chat = await self._begun(runtime, receive)
        except ClientGoneError:
            raise
        except Exception as error:
            await refuse(self._reply, error, method=self.scope["method"])
            return
        await self._stream(runtime, chat)

    async def _begun(self, runtime: Runtime, receive: Receive) -> Chat:
        if self.scope["method"] != "POST":
            raise MethodNotAllowed(self.scope["method"])
        body = await read_body(self.scope, receive, settings.MANAGEMENT_BODY_BYTES)
        self._watch.body_arrived()
        admitted = await in_thread(read_call, self.scope, body)
        # The body is read before anything is sent or stored, so that its failure has a status.
        await runtime.snapshots.project(admitted.access.project_id)
        return await _begin(admitted)

    async def _stream(self, runtime: Runtime, chat: Chat) -> None:
        async def beat() -> None:
            await self._reply.part(sse.HEARTBEAT)

        async def emit(event: AnyEvent) -> None:
            if event.last:
                heartbeat.stop()
                await self._reply.end_with(event.framed())
                return
            heartbeat.touch()
            await self._reply.part(event.framed())

        heartbeat = Heartbeat(beat, runtime.loop)
        try:
            await self._reply.start_stream([])
            await ChatLoop(runtime, chat, emit).run()
        finally:
            heartbeat.stop()

    async def _broken_off(self) -> None:
        watch, reply = self._watch, self._reply
        watch.absorb()
        if watch.late:
            late = RequestTimeoutError("The request body did not arrive in time")
            await refuse(reply, late, method=self.scope["method"])
        elif not watch.disconnected and reply.started:
            await reply.end_with(ErrorEvent(_RESTARTING).framed())
        elif not watch.disconnected:
            raise asyncio.CancelledError


async def _begin(admitted: AdmittedChat) -> Chat:
    """Keeps a client that leaves at this moment from leaving its conversation locked."""
    begun: list[Chat] = []
    try:
        await to_the_end(lambda: begun.append(begin_chat(admitted)))
    except asyncio.CancelledError:
        for chat in begun:
            await to_the_end(release_lease, chat.run.conversation_id, chat.run.run_id)
        raise
    return begun[0]
