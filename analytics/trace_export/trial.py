from __future__ import annotations

import asyncio
import logging
import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime

from analytics.models import TraceDestination
from analytics.telemetry.request_spans import SERVICE_NAME
from analytics.telemetry.rows import SpanRow
from analytics.trace_export.delivery import Answer, Target, Verdict, open_session, post
from analytics.trace_export.destinations import headers_of
from analytics.trace_export.encoder import encoded
from core.encryption.fernet import UndecryptableSecretError

logger = logging.getLogger("analytics.trace_export")

_UNREADABLE = "The stored headers can no longer be decrypted: enter them again."


@dataclass(frozen=True, slots=True)
class TrialOutcome:
    """`status` (HTTP) and `latency_ms` are the collector's, None without an answer; `trace_id` is the test span's."""

    ok: bool
    status: int | None
    latency_ms: float | None
    detail: str
    trace_id: str


def try_destination(row: TraceDestination) -> TrialOutcome:
    trace_id = secrets.token_hex(16)
    try:
        target = Target(row.endpoint, headers_of(row))
    except UndecryptableSecretError:
        return TrialOutcome(False, None, None, _UNREADABLE, trace_id)
    body = encoded(str(row.project_id), [_span(trace_id)])
    began = time.perf_counter()
    answer = asyncio.run(_send(target, body, trace_id))
    latency = round((time.perf_counter() - began) * 1000, 1) if answer.status else None
    logger.info(
        "trace_destination.tested project_id=%s destination_id=%s status=%s", row.project_id, row.pk, answer.status
    )
    is_ok = answer.verdict is Verdict.TAKEN and not answer.rejected
    return TrialOutcome(is_ok, answer.status or None, latency, answer.detail, trace_id)


async def _send(target: Target, body: bytes, batch_id: str) -> Answer:
    async with open_session() as session:
        return await post(session, target, body, batch_id)


def _span(trace_id: str) -> SpanRow:
    now = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S.%f}000"
    attributes = {"prompt_gateway.operation": "test"}
    span_id = secrets.token_hex(8)
    return SpanRow(now, trace_id, span_id, "", "test", "Internal", SERVICE_NAME, 1_000_000, "Unset", "", attributes)
