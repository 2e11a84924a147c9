"""Begins the answers to plain requests (docs/architecture.md#plans).

For a plain request, the stages have nothing to do but to forward it. Two callbacks answer it, without a task: `begin`
when the request has arrived whole, and `Exchange` when the provider's answer has.

The stages are the only way out. Before the provider's request is written, `begin` returns False, and they serve the
request from its beginning. After that, anything but a whole answer that the client may get as it came (a failure, a
client that leaves, a worker that is told to stop) starts their task, which finds its first call under way
(`BegunTransport`).
"""

from __future__ import annotations

import logging
import time
from operator import itemgetter
from typing import Final, NamedTuple

import msgspec

from core.errors import ApplicationError
from core.http.tracebacks import class_and_place
from gateway.pipeline.authenticate import authenticate_known, key_hash_of
from gateway.pipeline.context import RequestState
from gateway.pipeline.marked_documents import MARK
from gateway.pipeline.plan.exchange import Exchange
from gateway.pipeline.plan.plans import Plan, Plans, kept, plan_for, plans_of
from gateway.pipeline.plan.prompted import Asked, prompted
from gateway.protocol.arrived import ArrivedRequest
from gateway.protocol.client_ids import valid_id
from gateway.protocol.headers import ClientHeaders, RequestHeaders, client_headers, read_headers
from gateway.protocol.identifiers import new_request_id
from gateway.protocol.kept_fields import may_name_kept
from gateway.protocol.plain import PlainRequest, plain_request
from gateway.protocol.wire import ChatCompletionRequest, LazyFields, convert_request, decode_request, is_plain, streams
from gateway.runtime.runtime import Runtime
from gateway.surfaces.base import Surface
from gateway.surfaces.chat.surface import CHAT
from gateway.surfaces.checks import decoded
from gateway.surfaces.messages import plain as messages
from gateway.surfaces.responses import plain as responses
from integrations.providers.additions import with_headers
from integrations.providers.base import NOTHING, ChatRequest, PassingAdapter
from integrations.providers.common.search import find
from integrations.providers.errors import ProviderError
from integrations.transport.request_head import RequestHead, head_of

logger = logging.getLogger("gateway.request")

SENDER: Final = "prompt_gateway.sender"
"""The entry of a request's scope with the fields of its `Sender`, where `begin` has found it before it declined."""
_READERS: Final = {"messages": messages.plain_chat, "responses": responses.plain_chat}
OPERATIONS: Final = frozenset({CHAT.operation, *_READERS})
"""The operations whose plain requests have plans."""
# Blocks, items, tools and schemas have a type, and nothing of a plain request has one. A text has its quotes escaped.
_TYPE = b'"type"'
_VARIABLES = b'"prompt_variables"'
_encode = msgspec.json.Encoder().encode


Sent = tuple[RequestHead, bytes]


_SENDER: Final = "sender"
_name_of = itemgetter(0)


class KnownSender(NamedTuple):
    headers: RequestHeaders
    key_hash: str
    names: frozenset[bytes]
    passed: dict[tuple[str, ...], ClientHeaders]
    asks_for_nothing: bool

    def passed_on(self, names: tuple[str, ...]) -> ClientHeaders:
        if names not in self.passed:
            self.passed[names] = client_headers(self.headers.raw, names)
        return self.passed[names]


def known_sender(client: ArrivedRequest) -> KnownSender:
    """Caches the sender: most clients repeat their headers, which the server gives as the same list.

    Raises AuthenticationError for headers without a key.
    """
    raw, memory = client.scope["headers"], client.memory
    known: KnownSender | None = memory.get(_SENDER)
    if known is None or known.headers.raw is not raw:
        headers, names = read_headers(raw), frozenset(map(_name_of, raw))
        known = memory[_SENDER] = KnownSender(headers, key_hash_of(headers), names, {}, _asks_for_nothing(headers))
    return known


def _asks_for_nothing(headers: RequestHeaders) -> bool:
    return not (headers.content_encoding or headers.cache_control or headers.force_variant or headers.variables)


def sent(request: ChatCompletionRequest, sender: KnownSender, body: bytes, plan: Plan) -> Sent | None:
    passed_on = plan.attempt.credentials.forwarded_names
    if (
        (passed_on and not passed_on.isdisjoint(sender.names))
        or request.stream
        or request.models is not None
        or request.provider is not None
        or request.prompt_config is not None
        or request.prompt_variables is not None
        or request.response_format is not None
    ):
        return None
    passed = sender.passed_on(plan.passed_names) if plan.passed_names else ()
    if request.model == plan.own_name and request.thinking is None and passed in plan.heads:
        # A managed prompt may have added tools to a request of plain form.
        is_plain_form = request.__class__ is PlainRequest and request.tools is None
        for mark in plan.marks_in_plain if is_plain_form else plan.marks:
            if find(body, mark) >= 0:
                break
        else:
            return plan.heads[passed], body  # The adapter would say the same.
    if find(body, MARK) >= 0:
        return None
    return _natively(request, passed, body, plan) if plan.is_native else _as_chat(request, body, plan)


def _as_chat(request: ChatCompletionRequest, body: bytes, plan: Plan) -> Sent | None:
    attempt, adapter = plan.attempt, plan.adapter
    if not isinstance(adapter, PassingAdapter):
        return None
    forwarded = adapter.forwarded(
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
    return None if forwarded is None else (plan.heads[()], forwarded)


def _natively(request: ChatCompletionRequest, passed: ClientHeaders, body: bytes, plan: Plan) -> Sent | None:
    credentials, adapter = plan.attempt.credentials, plan.adapter
    asked = ChatRequest(
        plan.sent_model,
        False,
        body,
        LazyFields(body),
        headers=passed,
        cache_markers=plan.snapshot.settings.prompt_cache_markers,
        body_model=request.model,
    )
    if adapter.needs(asked, credentials) is not NOTHING:
        return None
    upstream = with_headers(adapter.build_request(asked, credentials), credentials)
    return None if upstream.warnings else (plan.add_head(passed, head_of(upstream)), upstream.body)


def begin(runtime: Runtime, surface: Surface, client: ArrivedRequest) -> bool:
    """Begins to answer a request by its plan.

    Returns False, and has sent nothing, without a plan or if the provider cannot be called at once.
    """
    try:
        exchange = _exchange_for(runtime, surface, client) if client.takes_answer else None
        if exchange is not None and exchange.begin():
            return True
    except (ApplicationError, ProviderError, RecursionError):
        pass  # The stages answer and record what is wrong with the request.
    except Exception as error:
        logger.error("plan.failed error=%s", class_and_place(error))
    runtime.declined += 1
    return False


def _exchange_for(runtime: Runtime, surface: Surface, client: ArrivedRequest) -> Exchange | None:
    arrived_us, started = time.time_ns() // 1000, time.perf_counter()
    body = client.whole_body()
    if streams(body) or len(body) > runtime.body_bytes:
        return None
    known = known_sender(client)
    headers = known.headers
    found = authenticate_known(runtime.snapshots, headers, known.key_hash) if known.asks_for_nothing else None
    if found is None:
        return None
    client.scope[SENDER] = headers, found
    plans = plans_of(found, surface)
    asked = None if plans is None else _asked(surface, body, plans)
    if plans is None or asked is None:
        return None
    name, logged, state = asked.request.model, asked.chat, None
    plan = plans[name] if name in plans else kept(plans, name, plan_for(runtime, found, surface, name))
    request_id = new_request_id()
    if plan is not None and (plan.snapshot.prompts or headers.prompt_config):
        state = RequestState(request_id, arrived_us, started, *found, headers, logged, asked.request, surface=surface)
        plan, asked = prompted(plan, state, asked)
    upstream = None if plan is None else sent(asked.request, known, asked.body, plan)
    if plan is None or upstream is None:
        return None
    head, passed = upstream
    user_id, admission = headers.user_id or asked.request.user or "", None
    client_id = valid_id(headers.client_request_id) if headers.client_request_id else ""
    if plan.limits is not None:
        reserved = plan.limits.reserved(asked.chat, asked.request)
        admission = plan.limits.admit(request_id, arrived_us, (headers.session_id, user_id), reserved)
        if admission is None:
            return None
    return Exchange(
        runtime=runtime,
        plan=plan,
        client=client,
        headers=headers,
        client_id=client_id,
        user_id=user_id,
        body=body,
        logged=logged,
        head=head,
        sent=passed,
        request_id=request_id,
        arrived_us=arrived_us,
        started=started,
        admission=admission,
        state=state,
    )


def _asked(surface: Surface, body: bytes, plans: Plans) -> Asked | None:
    if surface is CHAT:
        request = plain_request(body)
        if request is None and (find(body, _VARIABLES) >= 0 or may_name_kept(body)):
            return None
        return Asked(request or decode_request(body), body, body)
    # What names anything that a provider keeps is not plain.
    if find(body, _TYPE) >= 0:
        return None
    fields = decoded(body)
    model = fields.get("model")
    if model.__class__ is str and plans.get(model, plans) is None:
        return None  # It has to be translated.
    chat = _READERS[surface.operation](fields)
    if chat is None:
        return None
    logged = _encode(chat)
    return Asked(convert_request(chat, logged), logged, body)
