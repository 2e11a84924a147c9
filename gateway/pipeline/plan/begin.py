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
from operator import itemgetter
from typing import Final

from core.errors import ApplicationError
from core.http.tracebacks import class_and_place
from gateway.pipeline.authenticate import authenticate_known
from gateway.pipeline.marked_documents import MARK
from gateway.pipeline.plan.exchange import Exchange
from gateway.pipeline.plan.plans import Plan, add_plan, plans_of
from gateway.pipeline.run import Sender
from gateway.protocol.arrived import ArrivedRequest
from gateway.protocol.client_ids import valid_id
from gateway.protocol.headers import RequestHeaders, read_headers
from gateway.protocol.identifiers import new_request_id
from gateway.protocol.wire import ChatCompletionRequest, LazyFields, decode_request, is_plain, streams
from gateway.runtime.runtime import Runtime
from integrations.providers.base import ChatRequest
from integrations.providers.common.search import find
from integrations.providers.errors import ProviderError

logger = logging.getLogger("gateway.request")

SENDER: Final = "prompt_gateway.sender"
"""The entry of a request's scope with its `Sender`, where `begin` has found it before it declined."""
_name_of = itemgetter(0)


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
    plans = plans_of(*found)
    if plans is None:
        return None
    request = decode_request(body)
    plan = plans[request.model] if request.model in plans else add_plan(plans, runtime, found, request.model)
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
