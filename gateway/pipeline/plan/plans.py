"""Plans: what the stages would work out for each plain request, worked out once per key, protocol and model."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from analytics.request_log.record import RequestRecord
from analytics.spool.inflight import InflightKind, InflightRequest, kind_of
from core.errors import ApplicationError
from core.keys.services import KeyRecord
from gateway.pipeline.callers import has_limits
from gateway.pipeline.context import Attempt
from gateway.pipeline.inflight import rate_of
from gateway.pipeline.marked_documents import MARK
from gateway.pipeline.permitted import permitted
from gateway.pipeline.plan.leased import LeasedLimits
from gateway.pipeline.plan.shown import sample_body, sample_state, shown_of
from gateway.pipeline.select import only_attempt
from gateway.protocol.headers import ClientHeaders
from gateway.protocol.plain import NEVER_IN_PLAIN
from gateway.protocol.wire import NULL, LazyFields
from gateway.runtime.runtime import Runtime
from gateway.snapshot.project import ProjectSnapshot
from gateway.snapshot.store import Found
from gateway.surfaces.base import Surface
from gateway.surfaces.chat.surface import CHAT
from integrations.pricing.answered import may_fall_back
from integrations.pricing.cost import Price, TokenUnits, token_units
from integrations.providers.additions import with_headers
from integrations.providers.base import Adapter, ChatRequest, ParsedResponse, PassingAdapter
from integrations.providers.errors import ProviderError
from integrations.providers.native import PassingForwarder, native_adapter
from integrations.transport.base import Timeouts
from integrations.transport.request_head import RequestHead, head_of

# Clients choose the names of models, so the plans of a key are bounded.
_MAX_MODELS = 200
# They choose the headers of their protocol, too.
_MAX_HEADS = 16


class Plan(NamedTuple):
    """What all plain requests of a key for a model share, for one client protocol.

    `adapter` is of the client's own protocol if `is_native`. `heads` are those of the provider's requests, by the
    client's headers that pass on with them (`passed_names`). `read` returns the answer that a client may get as it
    came.

    `marks` are byte strings, one of which occurs in every body that names `own_name` and has to change;
    `marks_in_plain` are those of them that may occur in a body of plain form (`gateway.protocol.plain`).

    `may_fall_back`: the model that answers may have another price. `units` make the cost of most answers, None if that
    takes decimals. `record`, `served` and `last` are those of `Shown`, `kind` is what the stages would note of a
    request in flight. `limits` is None without any. `of_prompts` are the same plans for requests with managed prompts
    (`gateway.pipeline.plan.prompted`).
    """

    snapshot: ProjectSnapshot
    key: KeyRecord
    surface: Surface
    attempt: Attempt
    sent_model: str
    own_name: str | None
    adapter: Adapter
    is_native: bool
    marks: tuple[bytes, ...]
    marks_in_plain: tuple[bytes, ...]
    read: Callable[[bytes], ParsedResponse | None]
    price: Price | None
    may_fall_back: bool
    units: TokenUnits | None
    passed_names: tuple[str, ...]
    heads: dict[ClientHeaders, RequestHead]
    timeouts: Timeouts
    record: RequestRecord
    kind: InflightKind
    served: bytes
    last: bytes
    limits: LeasedLimits | None
    of_prompts: dict[tuple[object, ...], Plan | None]

    def add_head(self, passed: ClientHeaders, head: RequestHead) -> RequestHead:
        if len(self.heads) >= _MAX_HEADS:
            self.heads.clear()
        self.heads[passed] = head
        return head


Plans = dict[str, Plan | None]


def _forwards_alone(snapshot: ProjectSnapshot) -> bool:
    settings = snapshot.settings
    return not (
        snapshot.unreadable
        or settings.guardrails.is_on
        or settings.guardrails.guards_output
        or settings.cache_ttl_seconds
        or settings.introspection_enabled
        or settings.openai_responses_for_tools
    )


def plan_for(runtime: Runtime, found: Found, surface: Surface, model: str) -> Plan | None:
    snapshot, key = found
    attempts = only_attempt(snapshot, model)
    if attempts is None:
        return None
    try:
        (attempt,) = permitted(key, model, attempts) if key.is_restricted else attempts
        passing = None if attempt.is_limited else _passing(attempt, surface)
        if passing is None:
            return None
        sent_model = attempt.sent_model or attempt.model
        body = sample_body(sent_model)
        sample = ChatRequest(sent_model, False, body, LazyFields(body), body_model=sent_model, is_plain=True)
        upstream = with_headers(passing.adapter.build_request(sample, attempt.credentials), attempt.credentials)
        head = head_of(upstream)
    except (ApplicationError, ProviderError):
        return None
    state = sample_state(snapshot, key, surface, body)
    shown = shown_of(state, attempt, model, is_native=passing.is_native)
    if shown is None:
        return None
    passes_natively = upstream.body is body and not snapshot.settings.prompt_cache_markers
    marks = (*passing.marks, MARK)
    return Plan(
        snapshot,
        key,
        surface,
        attempt,
        sent_model,
        sent_model if passes_natively or not passing.is_native else None,
        passing.adapter,
        passing.is_native,
        marks,
        tuple(mark for mark in marks if mark not in NEVER_IN_PLAIN),
        passing.read,
        state.routing.price,
        state.routing.price is None or may_fall_back(attempt.model),
        token_units(state.routing.price),
        passing.names,
        {(): head},
        runtime.deadlines.within(runtime.deadlines.total),
        shown.record,
        _kind_of(shown.record, state.routing.price),
        shown.served,
        shown.last,
        LeasedLimits(runtime.limiter, found, state.routing.price) if has_limits(state) else None,
        {},
    )


def _kind_of(record: RequestRecord, price: Price | None) -> InflightKind:
    request = InflightRequest(
        "",
        record.project_id,
        0,
        record.api_key_id,
        record.requested_model,
        False,
        "",
        "",
        record.retention_days,
        operation=record.operation,
        team_id=record.team_id,
        rate=rate_of(price),
    )
    return kind_of(request)


class _Passing(NamedTuple):
    adapter: Adapter
    is_native: bool
    read: Callable[[bytes], ParsedResponse | None]
    marks: tuple[bytes, ...] = ()
    names: tuple[str, ...] = ()


def _passing(attempt: Attempt, surface: Surface) -> _Passing | None:
    if attempt.credentials.sets_parameters:
        return None
    if surface is CHAT:
        adapter = attempt.adapter
        if not isinstance(adapter, PassingAdapter):
            return None
        return _Passing(adapter, False, adapter.conforming, (*adapter.marks, NULL))
    native = native_adapter(attempt.provider, surface.operation)
    if not isinstance(native, PassingForwarder) or not native.serves(attempt.model):
        return None
    return _Passing(native, True, native.conforming, names=native.forward_headers)


def plans_of(found: Found, surface: Surface) -> Plans | None:
    snapshot, key = found
    of_keys = snapshot.plans.setdefault(surface.operation, {})
    if key.key_hash not in of_keys:
        has_plans = _forwards_alone(snapshot) and (surface is CHAT or not snapshot.prompts)
        of_keys[key.key_hash] = {} if has_plans else None
    plans: Plans | None = of_keys[key.key_hash]
    return plans


def kept(plans: Plans, model: str, plan: Plan | None) -> Plan | None:
    if len(plans) >= _MAX_MODELS:
        plans.clear()
    plans[model] = plan
    return plan
