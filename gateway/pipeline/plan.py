"""The plans of plain requests: what the stages would work out for each of them, worked out once for a key and a model
(docs/architecture.md#plans).

Nothing in a plain request, its project or its key gives a stage anything to do but to forward it. Two callbacks answer
it, without a task: `begin` when the request has arrived whole, and `Exchange` when the provider's answer has.

The stages are the one way out. Before the provider's request is written, `begin` returns False, and they serve the
request from its beginning. After that, whatever is not a whole answer that a client may get as it came (a failure, a
client that leaves, a worker that is told to stop) starts their task, which finds its first call of the provider under
way (`_BegunTransport`).
"""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Callable
from operator import itemgetter
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import force_setattr, replace

from analytics.request_log.record import CLIENT_REQUEST_ID, AttemptRecord, RequestRecord, SpoolEntry
from analytics.spool.inflight import InflightRequest
from core.errors import ApplicationError
from core.http.tracebacks import class_and_place
from core.keys.services import KeyRecord
from gateway.pipeline.answer_headers import served_by
from gateway.pipeline.authenticate import authenticate_known
from gateway.pipeline.context import Attempt, RequestState, RoutingState
from gateway.pipeline.marked_documents import MARK
from gateway.pipeline.permitted import permitted
from gateway.pipeline.record import cost_texts, record_of
from gateway.pipeline.run import Sender, serve
from gateway.pipeline.select import only_attempt
from gateway.protocol.arrived import ArrivedRequest
from gateway.protocol.client_ids import valid_id
from gateway.protocol.headers import ECHOED_REQUEST_ID, RequestHeaders, read_headers, trace_parent
from gateway.protocol.identifiers import new_request_id
from gateway.protocol.reply import RESPONSE_WRITER, Receive, Reply, Scope, Send
from gateway.protocol.wire import NULL, ChatCompletionRequest, LazyFields, decode_request, is_plain, streams
from gateway.runtime.runtime import Runtime
from gateway.snapshot.project import ProjectSnapshot
from gateway.snapshot.store import Found
from integrations.pricing.cost import Price, TokenUnits, known_cost, token_units
from integrations.providers.additions import with_headers
from integrations.providers.base import ChatRequest, ParsedResponse, PassingAdapter
from integrations.providers.common.search import find
from integrations.providers.errors import ProviderError
from integrations.providers.usage import Usage
from integrations.transport.base import BegunResponse, Sending, Timeouts, Transport, UpstreamResponse
from integrations.transport.request_head import RequestHead, head_of

logger = logging.getLogger("gateway.request")

SENDER: Final = "prompt_gateway.sender"
"""The entry of a request's scope with its `Sender`, where `begin` has found it before it declined."""
# Clients choose the names of models, so the plans of a key are bounded.
_MAX_MODELS = 200


class Plan(NamedTuple):
    """What all plain requests of a key for a model share.

    `marks` are byte strings, one of which occurs in every body that names `sent_model` and has to change. `head` is
    that of the provider's request, `record` what the stages would record, `served` the lines of the answer's headers
    behind those with the ids. `units` make the cost of most answers, None where that takes decimals.
    """

    snapshot: ProjectSnapshot
    key: KeyRecord
    attempt: Attempt
    sent_model: str
    adapter: PassingAdapter
    marks: tuple[bytes, ...]
    price: Price | None
    units: TokenUnits | None
    head: RequestHead
    timeouts: Timeouts
    record: RequestRecord
    served: bytes


Plans = dict[str, Plan | None]


def _forwards_alone(snapshot: ProjectSnapshot, key: KeyRecord) -> bool:
    """Returns whether the project and the key let every stage do nothing but forward."""
    settings = snapshot.settings
    return not (
        snapshot.prompts
        or snapshot.unreadable
        or snapshot.limits.is_set
        or snapshot.limits_users
        or key.limits is not None
        or key.team_limits is not None
        or settings.guardrails.is_on
        or settings.guardrails.guards_output
        or settings.cache_ttl_seconds
        or settings.introspection_enabled
        or settings.openai_responses_for_tools
    )


def _asks_for_nothing(headers: RequestHeaders) -> bool:
    """Returns whether the headers name the sender alone."""
    return headers.prompt_config is None and not (
        headers.content_encoding or headers.cache_control or headers.force_variant or headers.variables
    )


def _forwarded(request: ChatCompletionRequest, headers: RequestHeaders, body: bytes, plan: Plan) -> bytes | None:
    """Returns what the provider gets of the request, None where the stages have more to do than to forward it. Raises
    ProviderError."""
    passed_on = plan.attempt.credentials.forwarded_names
    if (
        (passed_on and not passed_on.isdisjoint(map(_name_of, headers.raw)))
        or request.stream
        or request.models is not None
        or request.provider is not None
        or request.prompt_config is not None
        or request.prompt_variables is not None
        or request.response_format is not None
    ):
        return None
    if request.model == plan.sent_model and request.thinking is None:
        for mark in plan.marks:
            if find(body, mark) >= 0:
                break
        else:
            return body  # The adapter would say the same.
    if find(body, MARK) >= 0:
        return None
    attempt = plan.attempt
    return plan.adapter.forwarded(
        ChatRequest(
            plan.sent_model,
            False,
            body,
            LazyFields(body),
            max_output=attempt.max_output,
            cache_markers=plan.snapshot.settings.prompt_cache_markers,
            is_plain=request.model == plan.sent_model and is_plain(request, body),
            known_as=attempt.model if attempt.sent_model else "",
        )
    )


def _plan_for(runtime: Runtime, snapshot: ProjectSnapshot, key: KeyRecord, model: str) -> Plan | None:
    """Returns the plan of a project and key that forward alone; None for a model without one."""
    attempts = only_attempt(snapshot, model)
    if attempts is None:
        return None
    try:
        (attempt,) = permitted(key, model, attempts) if key.is_restricted else attempts
        credentials, adapter, sent_model = attempt.credentials, attempt.adapter, attempt.sent_model or attempt.model
        if attempt.is_limited or credentials.sets_parameters or not isinstance(adapter, PassingAdapter):
            return None
        body = msgspec.json.encode({"model": sent_model, "messages": [_MESSAGE]})
        sample = ChatRequest(sent_model, False, body, LazyFields(body), is_plain=True)
        head = head_of(with_headers(adapter.build_request(sample, credentials), credentials))
    except (ApplicationError, ProviderError):
        return None
    state = RequestState("", 0, 0.0, snapshot, key, RequestHeaders(), body, decode_request(body))
    state.serve_from(attempt)
    state.answer.usage, state.answer.first_output, state.routing.served_seconds = Usage(1, 1), 1.0, 1.0
    served = served_by(state)
    if any(b"\n" in value or b"\r" in value for _, value in served):
        return None
    return Plan(
        snapshot,
        key,
        attempt,
        sent_model,
        adapter,
        (*adapter.marks, MARK, NULL),
        state.routing.price,
        token_units(state.routing.price),
        head,
        runtime.deadlines.within(runtime.deadlines.total),
        replace(record_of(state), requested_model=model),
        b"".join(b"%b: %b\r\n" % header for header in served),
    )


_MESSAGE = {"role": "user", "content": "Hello"}


def begin(runtime: Runtime, client: ArrivedRequest) -> bool:
    """Begins to answer a request by its plan. Returns False, and has sent nothing, for one without a plan, and where
    the provider cannot be asked at once."""
    try:
        exchange = _exchange_for(runtime, client)
        return exchange is not None and client.takes_answer and exchange.begin()
    except (ApplicationError, ProviderError, RecursionError):
        return False  # The stages answer and record what is wrong with the request.
    except Exception as error:
        logger.error("plan.failed error=%s", class_and_place(error))
        return False


def _exchange_for(runtime: Runtime, client: ArrivedRequest) -> Exchange | None:
    """Returns the exchange that answers the request, None for a request without a plan. Raises ApplicationError,
    ProviderError and RecursionError for one that the stages refuse."""
    arrived_us, started = time.time_ns() // 1000, time.perf_counter()
    body = client.whole_body()
    if streams(body) or len(body) > runtime.body_bytes:
        return None
    headers = read_headers(client.scope["headers"])
    found = authenticate_known(runtime.snapshots, headers) if _asks_for_nothing(headers) else None
    if found is None:
        return None
    client.scope[SENDER] = Sender(headers, found)
    plans = _plans_of(*found)
    if plans is None:
        return None
    request = decode_request(body)
    plan = plans[request.model] if request.model in plans else _add_plan(plans, runtime, found, request.model)
    sent = _forwarded(request, headers, body, plan) if plan is not None else None
    if plan is None or sent is None:
        return None
    return Exchange(
        runtime=runtime,
        plan=plan,
        client=client,
        headers=headers,
        client_id=valid_id(headers.client_request_id) if headers.client_request_id else "",
        user_id=headers.user_id or request.user or "",
        body=body,
        sent=sent,
        request_id=new_request_id(),
        arrived_us=arrived_us,
        started=started,
    )


def _plans_of(snapshot: ProjectSnapshot, key: KeyRecord) -> Plans | None:
    """Returns the plans of the key that have been made, None where its requests can have none."""
    name = key.key_hash
    if name not in snapshot.plans:
        snapshot.plans[name] = {} if _forwards_alone(snapshot, key) else None
    plans: Plans | None = snapshot.plans[name]
    return plans


def _add_plan(plans: Plans, runtime: Runtime, found: Found, model: str) -> Plan | None:
    if len(plans) >= _MAX_MODELS:
        plans.clear()
    plan = plans[model] = _plan_for(runtime, *found, model)
    return plan


_name_of = itemgetter(0)


_NOT_YET: Any = None
_NO_USAGE: Final = Usage()


class Exchange(msgspec.Struct):
    """One plain request and its provider's answer. `client_id` and `user_id` are empty where the client sent none;
    `sent` is what the provider gets of `body`; `started` and `called_at` come from `perf_counter`."""

    runtime: Runtime
    plan: Plan
    client: ArrivedRequest
    headers: RequestHeaders
    client_id: str
    user_id: str
    body: bytes
    sent: bytes
    request_id: str
    arrived_us: int
    started: float
    called_at: float = 0.0
    slot: int = -1
    # Set once the request is written, before anything calls back.
    response: BegunResponse = _NOT_YET

    def begin(self) -> bool:
        """Asks the provider. Returns False, and has sent nothing, where that has to be waited for."""
        plan, record = self.plan, self.plan.record
        self.called_at = time.perf_counter()
        # First, so that a request whose worker is killed right after the write is on record too.
        self.slot = self.runtime.inflight.begin(
            InflightRequest(
                self.request_id,
                record.project_id,
                self.arrived_us,
                record.api_key_id,
                record.requested_model,
                False,
                self.headers.session_id,
                self.user_id,
                record.retention_days,
                team_id=record.team_id,
            )
        )
        try:
            response = self.runtime.transport.begin(plan.head, self.sent, plan.timeouts, self._on_news)
        except ProviderError:
            response = None
        if response is None:
            self.runtime.inflight.end(self.slot)
            return False
        self.response = response
        self.client.on_change = self._go_by_stages
        return True

    def _on_news(self) -> None:
        """Answers once the provider's answer is whole, and leaves anything but a conforming one to the stages."""
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
            record = self._record_of(answer, now)
            head = self._head(len(body))
        except Exception as error:
            logger.error("plan.failed request_id=%s error=%s", self.request_id, class_and_place(error))
            self._go_by_stages()
            return
        self.response.on_news = None
        self.response.close()
        runtime.health.note_success(plan.attempt.target, (now - self.called_at) * 1000)
        logs_content = plan.snapshot.settings.log_content
        runtime.spool.append(SpoolEntry(record, self.body, body) if logs_content else SpoolEntry(record))
        runtime.inflight.end(self.slot)
        runtime.planned += 1
        self.client.answer(head, body)

    def _record_of(self, answer: ParsedResponse, now: float) -> RequestRecord:
        """Returns the record: that of the plan with what differs from request to request."""
        plan, usage, latency = self.plan, answer.usage or _NO_USAGE, round((now - self.started) * 1000)
        prompt, completion = usage.prompt_tokens, usage.completion_tokens
        texts = None
        if plan.units is not None and usage == Usage(prompt, completion):
            texts = plan.units.texts(prompt, completion)
        of_input, of_output, of_all = texts or ("", "", "")
        made = replace(
            plan.record,
            request_id=self.request_id,
            ts=self.arrived_us,
            session_id=self.headers.session_id,
            user_id=self.user_id,
            finish_reason=answer.finish_reason,
            prompt_tokens=prompt,
            completion_tokens=completion,
            cost_input_usd=of_input,
            cost_output_usd=of_output,
            cost_usd=of_all,
            latency_ms=latency,
            ttft_ms=latency,
            attempts=(
                AttemptRecord(
                    plan.attempt.provider,
                    plan.attempt.model,
                    200,
                    "",
                    int((now - self.called_at) * 1000),
                    prompt,
                    completion,
                    of_all,
                    int((self.called_at - self.started) * 1_000_000),
                    plan.attempt.deployment,
                ),
            ),
        )
        if texts is None:
            _add_cost(made, usage, plan.price)
        if self.client_id:
            force_setattr(made, "attributes", {CLIENT_REQUEST_ID: self.client_id, **plan.record.attributes})
        if self.headers.traceparent:
            trace_id, span_id = trace_parent(self.headers.traceparent)
            force_setattr(made, "trace_id", trace_id)
            force_setattr(made, "parent_span_id", span_id)
        return made

    def _head(self, length: int) -> bytes:
        """Returns the lines of the answer's headers, and the empty line behind them."""
        ids = self.request_id.encode()
        if self.client_id:
            ids += b"\r\n%b: %b" % (ECHOED_REQUEST_ID, self.client_id.encode())
        return _HEAD % (length, ids, self.plan.served)

    def _go_by_stages(self) -> None:
        """Hands the request over to the stages, once."""
        self.response.on_news = None
        self.client.start(self._stages)

    async def _stages(self, scope: Scope, receive: Receive, send: Send) -> None:
        plan, reply = self.plan, Reply(send, self.request_id)
        reply.writer = scope["extensions"][RESPONSE_WRITER]
        state = RequestState(
            self.request_id, self.arrived_us, self.started, plan.snapshot, plan.key, self.headers, slot=self.slot
        )
        if self.client_id:
            reply.ids.append((ECHOED_REQUEST_ID, self.client_id.encode()))
            state.attributes[CLIENT_REQUEST_ID] = self.client_id
        transport = _BegunTransport(self.runtime.transport, self.response, state.routing, self.called_at)
        try:
            await serve(dataclasses.replace(self.runtime, transport=transport), state, self._body_and(receive), reply)
        finally:
            self.response.close()

    def _body_and(self, receive: Receive) -> Receive:
        """Returns what receives the body, even of a client that has left since, and then what `receive` does."""
        waiting = [{"type": "http.request", "body": self.body}]

        async def received() -> Any:
            message = await receive()
            return waiting.pop() if waiting else message

        return received


_HEAD: Final = b"content-type: application/json\r\ncontent-length: %d\r\nx-request-id: %b\r\n%b\r\n"


def _add_cost(made: RequestRecord, usage: Usage, price: Price | None) -> None:
    """Sets the usage and the cost of an answer that counts more than prompt and completion, or whose price needs
    decimals. No other reference to the record exists yet."""
    cost = known_cost(usage, price)
    of_input, of_reads, of_writes, of_output, of_else, of_all = cost_texts(cost)
    fields = {
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "cost_known": cost is not None,
        "cost_source": cost.source if cost is not None else "",
        "cost_input_usd": of_input,
        "cost_cache_read_usd": of_reads,
        "cost_cache_write_usd": of_writes,
        "cost_output_usd": of_output,
        "cost_other_usd": of_else,
        "cost_usd": of_all,
        "attempts": (replace(made.attempts[0], cost_usd=of_all),),
    }
    for name, value in fields.items():
        force_setattr(made, name, value)


def _conforming(plan: Plan, body: bytes) -> ParsedResponse | None:
    """Returns the answer that the client gets as it came, None for any other."""
    try:
        answer = plan.adapter.conforming(body)
    except RecursionError:
        return None
    usage = None if answer is None else answer.usage
    if usage is None or not usage.prompt_tokens or not usage.completion_tokens or usage.estimated:
        return None
    # The answer to a request without a price has a warning, unless its provider states the cost.
    return None if plan.price is None and usage.stated_cost is not None else answer


class _BegunTransport:
    """A worker's transport for a request whose first call has been written."""

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

    def begin(self, head: RequestHead, body: bytes, timeouts: Timeouts, on_news: Callable[[], None]) -> None:
        """Begins nothing: the stages wait."""

    async def close(self) -> None:
        await self._transport.close()
