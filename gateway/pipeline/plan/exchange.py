from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

from analytics.request_log.record import CLIENT_REQUEST_ID, SpoolEntry
from core.http.tracebacks import class_and_place
from gateway.limits.claims import Admission
from gateway.pipeline.admit import settle
from gateway.pipeline.context import LimitUse, RequestState, RoutingState
from gateway.pipeline.inflight import note_allocation, note_trace
from gateway.pipeline.plan.plans import Plan
from gateway.pipeline.plan.records import add_prompt, record_of
from gateway.pipeline.rate_headers import rate_headers, rate_lines
from gateway.pipeline.run import serve
from gateway.protocol.arrived import ArrivedRequest
from gateway.protocol.headers import ECHOED_REQUEST_ID, RequestHeaders
from gateway.protocol.reply import RESPONSE_WRITER, Receive, Scope, Send
from gateway.runtime.runtime import Runtime
from gateway.surfaces.reply import reply_of
from integrations.pricing.answered import is_other_model
from integrations.providers.base import ParsedResponse
from integrations.providers.errors import ProviderError
from integrations.providers.usage import estimated_tokens
from integrations.transport.base import BegunResponse, Sending, Timeouts, Transport, UpstreamResponse
from integrations.transport.request_head import RequestHead

logger = logging.getLogger("gateway.request")
_NOT_YET: Any = None


class BegunTransport:
    def __init__(self, transport: Transport, response: BegunResponse, routing: RoutingState, called_at: float) -> None:
        self._transport = transport
        self._response: BegunResponse | None = response
        self._routing = routing
        self._called_at = called_at

    async def send(self, request: Any, timeouts: Timeouts, sending: Sending | None = None) -> UpstreamResponse:
        response, self._response = self._response, None
        if response is None:
            return await self._transport.send(request, timeouts, sending)
        self._routing.called_at = self._called_at
        self._routing.is_written = True
        return await response.answered(timeouts)

    def begin(self, head: RequestHead, body: bytes, timeouts: Timeouts, on_news: Callable[[], None]) -> None: ...

    async def close(self) -> None:
        await self._transport.close()


class Exchange(msgspec.Struct):
    """One plain request and its provider's answer.

    `client_id` and `user_id` may be empty. `logged` is the chat completion that says what `body` does; `sent` is what
    the provider gets after `head`. `started` and `called_at` come from `perf_counter`. `admission` is None without
    limits. `state` says which managed prompt the request has got, and is None in a project without any.
    """

    runtime: Runtime
    plan: Plan
    client: ArrivedRequest
    headers: RequestHeaders
    client_id: str
    user_id: str
    body: bytes
    logged: bytes
    head: RequestHead
    sent: bytes
    request_id: str
    arrived_us: int
    started: float
    admission: Admission | None
    state: RequestState | None
    called_at: float = 0.0
    slot: int = -1
    # Set once the request is written, before anything calls back.
    response: BegunResponse = _NOT_YET

    def begin(self) -> bool:
        response = None
        try:
            response = self._written()
        finally:
            if response is None and self.admission is not None and self.admission.reservation is not None:
                self.runtime.limiter.take_back(self.admission.reservation)
        if response is None:
            return False
        self.response = response
        self.client.on_change = self._go_by_stages
        return True

    def _written(self) -> BegunResponse | None:
        plan, inflight = self.plan, self.runtime.inflight
        self.called_at = time.perf_counter()
        # First, so that a request whose worker is killed right after the write is on record too.
        caller = self.user_id, self.headers.session_id
        tokens = estimated_tokens(len(self.body))
        self.slot = inflight.begin_of(plan.kind, self.request_id, self.arrived_us, caller, tokens)
        state = self.state
        if state is not None and state.prompt.rollout_id:
            note_allocation(self.runtime, state, self.slot)
        try:
            response = self.runtime.transport.begin(self.head, self.sent, plan.timeouts, self._on_news)
        except ProviderError:
            response = None
        if response is None:
            self._end()
        elif state is not None:
            note_trace(self.runtime, state)
        return response

    def _end(self) -> None:
        self.runtime.inflight.end(self.slot)
        if self.state is not None and self.state.prompt.rollout_id:
            self.runtime.open_requests.end(self.state)

    def _on_news(self) -> None:
        response, runtime = self.response, self.runtime
        now = time.perf_counter()
        if now - self.started > runtime.deadlines.total or not self.client.takes_answer:
            self._go_by_stages()
        elif not response.complete:
            if not response.keep_waiting():
                self._go_by_stages()
        elif response.status != 200 or response.buffered > runtime.answer_bytes:
            self._go_by_stages()
        else:
            self._finish(now)

    def _finish(self, now: float) -> None:
        plan, runtime, body = self.plan, self.runtime, self.response.body()
        answer = None if body is None else _conforming(plan, body)
        if body is None or answer is None:
            self._go_by_stages()
            return
        try:
            record = record_of(self, answer, now)
            if self.state is not None and self.state.prompt.config_id:
                add_prompt(record, self.state, plan, body)
            head = self._head(len(body))
        except Exception as error:
            logger.error("plan.failed request_id=%s error=%s", self.request_id, class_and_place(error))
            self._go_by_stages()
            return
        self.response.on_news = None
        self.response.close()
        runtime.health.note_success(plan.attempt.target, (now - self.called_at) * 1000)
        logs_content = plan.snapshot.settings.log_content
        runtime.spool.append(SpoolEntry(record, self.logged, body) if logs_content else SpoolEntry(record))
        self._end()
        if self.admission is not None and self.admission.reservation is not None:
            settle(runtime.limiter, self.admission.reservation, record)
        runtime.planned += 1
        self.client.answer(head, body)
        if answer.given and not plan.attempt.credentials.own_account:
            runtime.kept_ids.note(plan.snapshot.id_text, plan.attempt.credentials.integration_id, answer.given)

    def _head(self, length: int) -> bytes:
        ids = self.request_id.encode()
        if self.client_id:
            ids += b"\r\n%b: %b" % (ECHOED_REQUEST_ID, self.client_id.encode())
        limits = rate_lines(self.arrived_us, self.admission) if self.admission is not None else b""
        return _HEAD % (length, ids, self.plan.served, limits, self.plan.last)

    def _go_by_stages(self) -> None:
        self.response.on_news = None
        self.runtime.handed_over += 1
        self.client.start(self._stages)

    async def _stages(self, scope: Scope, receive: Receive, send: Send) -> None:
        plan, reply = self.plan, reply_of(self.plan.surface)(send, self.request_id)
        reply.writer = scope["extensions"][RESPONSE_WRITER]
        state = RequestState(
            self.request_id,
            self.arrived_us,
            self.started,
            plan.snapshot,
            plan.key,
            self.headers,
            surface=plan.surface,
            slot=self.slot,
        )
        if self.client_id:
            reply.ids.append((ECHOED_REQUEST_ID, self.client_id.encode()))
            state.attributes[CLIENT_REQUEST_ID] = self.client_id
        if self.admission is not None:
            state.limits = LimitUse(self.admission.reservation, rate_headers(self.arrived_us, self.admission))
        transport = BegunTransport(self.runtime.transport, self.response, state.routing, self.called_at)
        try:
            await serve(dataclasses.replace(self.runtime, transport=transport), state, self._body_and(receive), reply)
        finally:
            self.response.close()

    def _body_and(self, receive: Receive) -> Receive:
        """Gives the body first, even if the client has left since, and then what `receive` gives."""
        waiting = [{"type": "http.request", "body": self.body}]

        async def received() -> Any:
            message = await receive()
            return waiting.pop() if waiting else message

        return received


_HEAD: Final = b"content-type: application/json\r\ncontent-length: %d\r\nx-request-id: %b\r\n%b%b%b\r\n"


def _has_another_price(plan: Plan, answered: str) -> bool:
    asked = plan.attempt.model
    is_another = answered != asked and (plan.price is None or is_other_model(asked, answered))
    return is_another and plan.attempt.price_of(plan.snapshot, answered) is not None


def _conforming(plan: Plan, body: bytes) -> ParsedResponse | None:
    try:
        answer = plan.read(body)
    except RecursionError:
        return None
    if answer is None or answer.usage is None:
        return None
    usage = answer.usage
    if not usage.prompt_tokens or not usage.completion_tokens or usage.estimated:
        return None
    if usage.parts or (plan.may_fall_back and _has_another_price(plan, answer.model)):
        return None
    # The answer to a request without a price has a warning, unless its provider states the cost.
    return None if plan.price is None and usage.stated_cost is not None else answer
