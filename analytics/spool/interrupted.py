"""Records the requests that a worker had in flight when it died.

A request is in a slot of the worker's table or in the worker's segments, or for an instant in both. Requests only in
the table become records with the outcome `interrupted`, in a segment of their own.
"""

from __future__ import annotations

import logging
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec

from analytics.request_log.record import DEFAULT_RETENTION_DAYS, Outcome, RequestRecord
from analytics.spool import frames, names
from analytics.spool.inflight import UNITS_OF_DOLLAR, UNKNOWN_RATE, InflightRequest, read_table
from analytics.spool.reader import is_finished, request_ids

logger = logging.getLogger("analytics.spool")

_PLACES = Decimal("0.0000000001")
_NOTHING_ELSE = dict.fromkeys(
    ("cost_cache_read_usd", "cost_cache_write_usd", "cost_output_usd", "cost_other_usd"), "0.0000000000"
)


def record_interrupted(directory: Path) -> int:
    count = 0
    for table in names.list_files(directory, names.INFLIGHT):
        if is_finished(table):
            count += _settle(directory, table)
    return count


def is_retained(segment: Path, segments: list[Path]) -> bool:
    """Returns whether a shipped segment is still needed to find out which requests of its worker were recorded.

    That is a worker's newest segment while its table exists: only there can a request with a slot in use have a record.
    """
    name = names.parse(segment)
    if name is None or not any(segment.parent.glob(f"*-{name.worker}{names.INFLIGHT}")):
        return False
    siblings = [path for path in segments if _worker(path) == name.worker and names.RECOVERED not in path.name]
    return names.RECOVERED in segment.name or segment == siblings[-1]


def _settle(directory: Path, table: Path) -> int:
    recovered = directory / f"{table.stem}{names.RECOVERED}{names.SEGMENT}"
    pending: list[InflightRequest] = []
    # A segment that is there already was written by a shipper that died before it could remove the table.
    if not recovered.exists():
        pending = _unrecorded(directory, table)
        if pending:
            _write(recovered, pending)
            logger.warning("worker.died worker=%s interrupted=%d", _worker(table), len(pending))
    table.unlink()
    return len(pending)


def _unrecorded(directory: Path, table: Path) -> list[InflightRequest]:
    in_use = list(read_table(table.read_bytes()))
    if not in_use:
        return []
    recorded: set[str] = set()
    for segment in names.list_files(directory, names.SEGMENT):
        if _worker(segment) == _worker(table):
            recorded.update(request_ids(segment))
    return [request for request in in_use if request.request_id not in recorded]


def _write(path: Path, requests: list[InflightRequest]) -> None:
    hidden = path.with_suffix(".new")
    seed = frames.segment_seed(path)
    with hidden.open("wb") as file:
        for request in requests:
            file.writelines(frames.pack(frames.encode_meta(_interrupted(request)), b"", b"", seed))
        file.flush()
        os.fsync(file.fileno())
    hidden.rename(path)


def _interrupted(request: InflightRequest) -> RequestRecord:
    record = RequestRecord(
        request_id=request.request_id,
        project_id=request.project_id,
        ts=request.ts,
        outcome=Outcome.INTERRUPTED,
        status_code=500,
        api_key_id=request.api_key_id,
        session_id=request.session_id,
        user_id=request.user_id,
        requested_model=request.requested_model,
        error_type="api_error",
        error_code="internal_error",
        error_message="The worker died while the request was in flight.",
        is_stream=request.stream,
        retention_days=request.retention_days or DEFAULT_RETENTION_DAYS,
        operation=request.operation,
        team_id=request.team_id,
        source=request.source,
        **_expected(request),
    )
    # Without the allocation the deaths that a version causes would be missing in its rollout's comparison.
    return record if request.allocation is None else msgspec.structs.replace(record, **request.allocation._asdict())


def _expected(request: InflightRequest) -> dict[str, Any]:
    if not request.tokens:
        return {}
    usage = {"prompt_tokens": request.tokens, "tokens_estimated": True}
    if request.rate == UNKNOWN_RATE:
        return usage
    cost = f"{(Decimal(request.tokens * request.rate) / UNITS_OF_DOLLAR).quantize(_PLACES):f}"
    return {**usage, "cost_known": True, "cost_usd": cost, "cost_input_usd": cost, **_NOTHING_ELSE}


def _worker(path: Path) -> str:
    name = names.parse(path)
    return name.worker if name else ""
