"""Plans: what the stages would work out for each plain request, worked out once for a key and a model."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from analytics.request_log.record import RequestRecord
from core.errors import ApplicationError
from core.keys.services import KeyRecord
from gateway.pipeline.answer_headers import served_by
from gateway.pipeline.context import Attempt, RequestState
from gateway.pipeline.marked_documents import MARK
from gateway.pipeline.permitted import permitted
from gateway.pipeline.record import record_of
from gateway.pipeline.select import only_attempt
from gateway.protocol.headers import RequestHeaders
from gateway.protocol.wire import NULL, LazyFields, decode_request
from gateway.runtime.runtime import Runtime
from gateway.snapshot.project import ProjectSnapshot
from gateway.snapshot.store import Found
from integrations.pricing.cost import Price, TokenUnits, token_units
from integrations.providers.additions import with_headers
from integrations.providers.base import ChatRequest, PassingAdapter
from integrations.providers.errors import ProviderError
from integrations.providers.usage import Usage
from integrations.transport.base import Timeouts
from integrations.transport.request_head import RequestHead, head_of

# Clients choose the names of models, so the plans of a key are bounded.
_MAX_MODELS = 200
_MESSAGE = {"role": "user", "content": "Hello"}


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


def plans_of(snapshot: ProjectSnapshot, key: KeyRecord) -> Plans | None:
    """Returns the plans of the key that have been made, None where its requests can have none."""
    name = key.key_hash
    if name not in snapshot.plans:
        snapshot.plans[name] = {} if _forwards_alone(snapshot, key) else None
    plans: Plans | None = snapshot.plans[name]
    return plans


def add_plan(plans: Plans, runtime: Runtime, found: Found, model: str) -> Plan | None:
    if len(plans) >= _MAX_MODELS:
        plans.clear()
    plan = plans[model] = _plan_for(runtime, *found, model)
    return plan
