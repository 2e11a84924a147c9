"""Makes the gateway's own spans from a request's record: one for the request, one for each call to a provider.

They are made when a session is read, from the columns of `requests`. They follow the GenAI conventions
(https://github.com/open-telemetry/semantic-conventions-genai); only model calls have names that begin with `gen_ai.`.
They hold no message content and no error text, which may quote it.
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

from analytics.request_log.record import AttemptRecord, Outcome, RequestRecord
from analytics.telemetry.operation_names import operation_names
from analytics.telemetry.rows import SpanRow

REQUEST_ID: Final = "prompt_gateway.request_id"
SERVICE_NAME: Final = "prompt-gateway"

# The names of providers in the conventions that differ from ours (attribute gen_ai.provider.name).
_PROVIDERS: Final = {
    "azure_openai": "azure.ai.openai",
    "google": "gcp.gemini",
    "google_vertex": "gcp.vertex_ai",
    "bedrock": "aws.bedrock",
    "mistral": "mistral_ai",
    "xai": "x_ai",
}
# These errors mean that no provider was called: the circuit was open, or the dialect cannot express the request.
_NOT_CALLED: Final = frozenset({"circuit_open", "unsupported_parameter"})
_LEFT: Final = frozenset({Outcome.CANCELLED.value, Outcome.INTERRUPTED.value})

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST_US: Final = (datetime(2049, 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
_MS: Final = 1_000_000
_SECOND: Final = 1_000_000_000


def request_spans(record: RequestRecord) -> list[SpanRow]:
    """The same record always gives the same spans. Raises ValueError for an invalid id."""
    request_id = UUID(record.request_id)
    start = min(max(record.ts, 0), _LATEST_US)
    names = operation_names(record.operation)
    # A request id is unique and never zero, as a trace id has to be.
    trace_id, span_id = record.trace_id or request_id.hex, _span_id(request_id, 0)
    rows = [
        _row(
            start * 1000,
            (trace_id, span_id, record.parent_span_id),
            f"POST {names.route}" if record.source == "gateway" else record.source,
            "Server" if record.source == "gateway" else "Internal",
            max(record.latency_ms, 0) * _MS,
            ("Error" if record.status_code >= 500 else "Unset", record.error_code if record.status_code >= 500 else ""),
            _of_request(record),
        )
    ]
    for number, attempt in enumerate(record.attempts, start=1):
        if attempt.error in _NOT_CALLED:
            continue
        served = number == len(record.attempts) and _is_served(record, attempt)
        rows.append(
            _row(
                start * 1000 + _offset_ns(attempt, number),
                (trace_id, _span_id(request_id, number), span_id),
                f"{names.name} {attempt.model}",
                "Client",
                _duration_ns(record, attempt, served=served),
                ("Error" if attempt.error and attempt.error not in _LEFT else "Unset", attempt.error),
                _of_attempt(record, attempt, served=served),
            )
        )
    return rows


def _row(
    start_ns: int,
    ids: tuple[str, str, str],
    name: str,
    kind: str,
    duration_ns: int,
    status: tuple[str, str],
    attributes: dict[str, str],
) -> SpanRow:
    return SpanRow(
        _time(start_ns),
        *ids,
        name,
        kind,
        SERVICE_NAME,
        duration_ns,
        *status,
        {key: value for key, value in attributes.items() if value},
    )


def _time(ns: int) -> str:
    whole = _EPOCH + timedelta(seconds=ns // _SECOND)
    return f"{whole:%Y-%m-%d %H:%M:%S}.{ns % _SECOND:09}"


def _span_id(request_id: UUID, number: int) -> str:
    """Returns an id of eight bytes, always the same for these arguments and never zero."""
    digest = hashlib.blake2b(request_id.bytes + number.to_bytes(4, "big"), digest_size=8).hexdigest()
    return digest if int(digest, 16) else "1".zfill(16)


def _is_served(record: RequestRecord, attempt: AttemptRecord) -> bool:
    return not attempt.error or record.ttft_ms > 0 or attempt.error in _LEFT


def _offset_ns(attempt: AttemptRecord, number: int) -> int:
    """Returns at least one nanosecond per attempt: spans are ordered by time, and the clock may not have moved."""
    return max(attempt.offset_us * 1000, number)


def _duration_ns(record: RequestRecord, attempt: AttemptRecord, *, served: bool) -> int:
    # The latency of an attempt ends with the first output; a stream goes on for as long as the request does.
    streamed = served and record.is_stream
    return max(record.latency_ms * _MS - attempt.offset_us * 1000 if streamed else attempt.latency_ms * _MS, 0)


def _of_request(record: RequestRecord) -> dict[str, str]:
    failed = record.status_code >= 500
    over_http = {
        "http.request.method": "POST",
        "http.route": operation_names(record.operation).route,
        "http.response.status_code": str(record.status_code),
    }
    return {
        **(over_http if record.source == "gateway" else {}),
        "error.type": record.error_code or str(record.status_code) if failed else "",
        "llm.session_id": record.session_id,
        "session.id": record.session_id,
        "user.id": record.user_id,
        REQUEST_ID: record.request_id,
        "prompt_gateway.operation": record.operation,
        "prompt_gateway.outcome": str(record.outcome),
        "prompt_gateway.cache": record.cache_status,
        "prompt_gateway.rollout_id": record.rollout_id,
        "prompt_gateway.variant": record.variant,
    }


def _of_attempt(record: RequestRecord, attempt: AttemptRecord, *, served: bool) -> dict[str, str]:
    prompted, names = record.prompt_version > 0, operation_names(record.operation)
    return {
        "gen_ai.operation.name": names.name,
        "gen_ai.output.type": names.output_type,
        "gen_ai.provider.name": _PROVIDERS.get(attempt.provider, attempt.provider),
        "gen_ai.request.model": attempt.model,
        "gen_ai.request.stream": "true" if record.is_stream else "",
        "gen_ai.session_id": record.session_id,
        "gen_ai.conversation.id": record.session_id,
        "gen_ai.prompt.name": record.prompt_name if prompted else "",
        "gen_ai.prompt.version": str(record.prompt_version) if prompted else "",
        "gen_ai.usage.input_tokens": _count(attempt.prompt_tokens),
        "gen_ai.usage.output_tokens": _count(attempt.completion_tokens),
        "http.response.status_code": _count(attempt.status),
        "error.type": attempt.error,
        REQUEST_ID: record.request_id,
        "prompt_gateway.cost_usd": attempt.cost_usd,
        **(_of_answer(record, attempt) if served else {}),
    }


def _of_answer(record: RequestRecord, attempt: AttemptRecord) -> dict[str, str]:
    to_first = record.ttft_ms / 1000 - attempt.offset_us / 1_000_000 if record.is_stream and record.ttft_ms else 0.0
    return {
        "gen_ai.response.model": record.model,
        "gen_ai.response.finish_reasons": json.dumps([record.finish_reason]) if record.finish_reason else "",
        "gen_ai.response.time_to_first_chunk": f"{to_first:g}" if to_first > 0 else "",
        "gen_ai.usage.cache_read.input_tokens": _count(record.cache_read_tokens),
        "gen_ai.usage.cache_write.input_tokens": _count(record.cache_write_tokens),
        "gen_ai.usage.reasoning.output_tokens": _count(record.reasoning_tokens),
    }


def _count(number: int) -> str:
    return str(number) if number > 0 else ""
