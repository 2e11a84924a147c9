"""Records applications' own calls with a prompt that a rollout chose, from their spans.

Such a call becomes a row of the request log with source `telemetry`, so that it counts for its arm. Its id is made of
its span's, so that a span that is sent again is recognized.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

import redis
from asgiref.sync import sync_to_async
from django.conf import settings

from analytics.queries.traces import gateway_calls
from analytics.request_log.record import TELEMETRY, Outcome, RequestRecord, SpoolEntry
from analytics.telemetry import prompt_calls as names
from analytics.telemetry.prompt_calls import PromptCall
from core.redis.clients import shared_client
from core.redis.failures import REDIS_ERRORS, reason
from gateway.pipeline.record import cost_fields, repeatable_id
from gateway.runtime.runtime import Runtime
from gateway.runtime.traced_requests import traced_requests
from gateway.snapshot.project import ProjectSnapshot
from gateway.snapshot.prompts import ManagedPrompt, RunningRollout
from gateway.worker.current import on_loop
from integrations.pricing.cost import Cost, known_cost
from integrations.providers.openai.finish import finish_reason
from integrations.providers.usage import Usage
from rollouts.allocation import Variant

logger = logging.getLogger("gateway.prompt_outcomes")

_SEEN_SECONDS = 86_400
_MAX_64 = 2**64 - 1
_MAX_TEXT = 200
_NS_A_MS = 1_000_000
# The names of providers in the GenAI conventions that differ from ours.
_PROVIDERS = {
    "azure.ai.openai": "azure_openai",
    "gcp.gemini": "google",
    "gcp.vertex_ai": "google_vertex",
    "aws.bedrock": "bedrock",
    "mistral_ai": "mistral",
    "x_ai": "xai",
}
_TRIED_AGAIN = frozenset({408, 429})

_ANSWER_SECONDS = 1.0


def record_calls(project_id: UUID, calls: Sequence[PromptCall], **_: Any) -> None:
    passed = _passed(project_id, {call.trace_id for call in calls})
    own = [
        call
        for call in calls
        if not any(0 <= began_ns - call.started_ns <= call.duration_ns for began_ns in passed[call.trace_id])
    ]
    if own:
        on_loop(lambda runtime: _record(runtime, project_id, own))


def _passed(project_id: UUID, trace_ids: Collection[str]) -> Mapping[str, list[int]]:
    """Returns when requests of the gateway began in these traces, in Unix nanoseconds.

    It combines stored requests and those that workers announced, whose records may come later.
    """
    found: dict[str, list[int]] = {trace_id: [] for trace_id in trace_ids}
    for row in gateway_calls(project_id, trace_ids):
        found[row.trace_id].append(row.started_ns)
    try:
        announced = traced_requests(_client(), project_id, trace_ids)
    except REDIS_ERRORS as error:
        logger.warning("outcomes.announcements_unknown error=%s", reason(error))
        return found
    for trace_id, arrived_us in announced.items():
        found[trace_id] += [one * 1000 for one in arrived_us]
    return found


async def _record(runtime: Runtime, project_id: UUID, calls: Sequence[PromptCall]) -> None:
    snapshot = await runtime.snapshots.project(project_id)
    records = [record for call in calls if (record := record_of(snapshot, call)) is not None]
    for record in await sync_to_async(_unseen, thread_sensitive=False)(records):
        runtime.spool.append(SpoolEntry(record))


def _unseen(records: Sequence[RequestRecord]) -> Sequence[RequestRecord]:
    if not records:
        return records
    try:
        with _client().pipeline(transaction=False) as commands:
            for record in records:
                commands.set(f"svc:outcome:{record.request_id}", 1, nx=True, ex=_SEEN_SECONDS)
            return [record for record, is_new in zip(records, commands.execute(), strict=True) if is_new]
    except REDIS_ERRORS as error:
        logger.warning("outcomes.not_compared error=%s", reason(error))
        return records


def _client() -> redis.Redis:
    return shared_client(settings.REDIS_URL, seconds=_ANSWER_SECONDS)


def record_of(snapshot: ProjectSnapshot, call: PromptCall) -> RequestRecord | None:
    prompt, rollout = _rolled_out(snapshot, call)
    unit, stage = _number(call, names.ALLOCATION_UNIT), _number(call, names.ROLLOUT_STAGE)
    if prompt is None or rollout is None or not 0 < unit <= _MAX_64 or not 0 <= stage <= rollout.stage:
        return None
    usage, provider = _usage(call), _provider(call)
    model = _text(call, "gen_ai.response.model") or _text(call, "gen_ai.request.model")
    price = snapshot.price_of(provider, model)
    if price is None:
        price = snapshot.price_of(provider, _text(call, "gen_ai.request.model"))
    return RequestRecord(
        request_id=repeatable_id(call.started_ns // _NS_A_MS, snapshot.id_text, call.trace_id, call.span_id),
        project_id=snapshot.id_text,
        ts=call.started_ns // 1000,
        source=TELEMETRY,
        session_id=_text(call, "gen_ai.conversation.id") or _text(call, "session.id"),
        user_id=_text(call, "user.id"),
        provider=provider,
        model=model,
        requested_model=_text(call, "gen_ai.request.model"),
        finish_reason=_finish_reason(call),
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        latency_ms=call.duration_ns // _NS_A_MS,
        retention_days=snapshot.settings.retention_days,
        prompt_config_id=prompt.config_id,
        prompt_name=prompt.name,
        prompt_version=_number(call, names.PROMPT_VERSION),
        rollout_id=rollout.id,
        rollout_stage=stage,
        variant=call.attributes[names.VARIANT],
        alloc_unit=unit,
        alloc_fallback=call.attributes.get(names.ALLOCATION_FALLBACK) == "true",
        trace_id=call.trace_id,
        parent_span_id=call.span_id,
        **_outcome(call),
        **cost_fields(known_cost(usage, price) if usage.is_billed or price is None else Cost()),
    )


def _rolled_out(snapshot: ProjectSnapshot, call: PromptCall) -> tuple[ManagedPrompt | None, RunningRollout | None]:
    arm, version = call.attributes[names.VARIANT], _number(call, names.PROMPT_VERSION)
    for prompt in snapshot.prompts.values():
        rollout = prompt.rollout
        if rollout is None or rollout.id != call.attributes[names.ROLLOUT_ID]:
            continue
        versions = {Variant.TARGET.value: rollout.target.number, Variant.BASELINE.value: rollout.baseline.number}
        if prompt.config_id == call.attributes[names.CONFIG_ID] and versions.get(arm) == version:
            return prompt, rollout
    return None, None


def _outcome(call: PromptCall) -> Mapping[str, Any]:
    """What a vendor refuses for the request's sake is the request's fault; all else is the vendor's."""
    if not call.failed:
        return {"outcome": Outcome.SUCCESS, "status_code": 200}
    status = _number(call, "http.response.status_code")
    if 400 <= status < 500 and status not in _TRIED_AGAIN:
        failure = (400, "invalid_request_error", "provider_rejected")
    else:
        failure = (503, "service_unavailable_error", "provider_unavailable")
    return {
        "outcome": Outcome.ERROR,
        "status_code": failure[0],
        "error_type": failure[1],
        "error_code": failure[2],
        "error_message": _text(call, "error.type"),
    }


def _usage(call: PromptCall) -> Usage:
    prompt, completion = _number(call, "gen_ai.usage.input_tokens"), _number(call, "gen_ai.usage.output_tokens")
    reads = _number(call, "gen_ai.usage.cache_read.input_tokens")
    writes = _number(call, "gen_ai.usage.cache_creation.input_tokens")
    return Usage(
        prompt_tokens=max(prompt, reads + writes),
        completion_tokens=completion,
        cache_read_tokens=reads,
        cache_write_tokens=writes,
    )


def _finish_reason(call: PromptCall) -> str:
    try:
        reasons = json.loads(call.attributes.get("gen_ai.response.finish_reasons", "[]"))
    except (ValueError, RecursionError):
        return ""
    stated = isinstance(reasons, list) and reasons and isinstance(reasons[0], str)
    return finish_reason(reasons[0], called_tools=False) if stated else ""


def _provider(call: PromptCall) -> str:
    # The second name is that of older conventions.
    name = _text(call, "gen_ai.provider.name") or _text(call, "gen_ai.system")
    return _PROVIDERS.get(name, name)


def _text(call: PromptCall, name: str) -> str:
    return call.attributes.get(name, "")[:_MAX_TEXT]


def _number(call: PromptCall, name: str) -> int:
    text = call.attributes.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 20 else 0
