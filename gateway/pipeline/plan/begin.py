"""Begins the answers to plain requests (docs/architecture.md#plans).

Nothing in a plain request, its project or its key gives a stage anything to do but to forward it. Two callbacks answer
it, without a task: `begin` when the request has arrived whole, and `Exchange` when the provider's answer has.

The stages are the one way out. Before the provider's request is written, `begin` returns False, and they serve the
request from its beginning. After that, whatever is not a whole answer that a client may get as it came (a failure, a
client that leaves, a worker that is told to stop) starts their task, which finds its first call of the provider under
way (`BegunTransport`).
"""

from __future__ import annotations

import logging
import time
from typing import Final

import msgspec

from core.errors import ApplicationError
from core.http.tracebacks import class_and_place
from gateway.pipeline.authenticate import authenticate_known
from gateway.pipeline.context import RequestState
from gateway.pipeline.plan.exchange import Exchange
from gateway.pipeline.plan.plans import Plans, kept, plan_for, plans_of
from gateway.pipeline.plan.prompted import Asked, prompted
from gateway.pipeline.plan.sender import known_sender
from gateway.pipeline.plan.sent import sent
from gateway.protocol.arrived import ArrivedRequest
from gateway.protocol.client_ids import valid_id
from gateway.protocol.identifiers import new_request_id
from gateway.protocol.plain import plain_request
from gateway.protocol.wire import convert_request, decode_request, streams
from gateway.runtime.runtime import Runtime
from gateway.surfaces.base import Surface
from gateway.surfaces.chat.surface import CHAT
from gateway.surfaces.checks import decoded
from gateway.surfaces.messages import plain as messages
from gateway.surfaces.responses import plain as responses
from integrations.providers.common.search import find
from integrations.providers.errors import ProviderError

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


def begin(runtime: Runtime, surface: Surface, client: ArrivedRequest) -> bool:
    """Begins to answer a request by its plan. Returns False, and has sent nothing, for one without a plan, and where
    the provider cannot be asked at once."""
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
    """Returns the exchange that answers the request, None for a request without a plan. Raises ApplicationError,
    ProviderError and RecursionError for one that the stages refuse."""
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
    """Returns the request, None for one with variables of a prompt and for one of another protocol that is not plain.
    Raises ValidationError."""
    if surface is CHAT:
        request = plain_request(body)
        if request is None and find(body, _VARIABLES) >= 0:
            return None
        return Asked(request or decode_request(body), body, body)
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
