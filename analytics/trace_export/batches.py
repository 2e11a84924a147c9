from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from analytics.request_log.record import RequestRecord
from analytics.shipper.columns import chat_response
from analytics.spool.reader import Frame, read_stretch
from analytics.telemetry.request_spans import request_spans
from analytics.telemetry.rows import SpanRow
from analytics.trace_export.encoder import encoded
from analytics.trace_export.messages import message_attributes

logger = logging.getLogger("analytics.trace_export")

MAX_SPANS = 1000
MAX_CHARACTERS = 2 * 1024 * 1024
_CALL = "Client"
# The last 56 bits of a trace id are random (https://www.w3.org/TR/trace-context-2/#random-trace-id-flag).
_RANDOM_DIGITS, _RANDOM_RANGE = 14, 1 << 56


@dataclass(frozen=True, slots=True)
class Selection:
    sampling_ratio: float
    include_content: bool

    def has(self, trace_id: str) -> bool:
        """A trace is exported whole or not at all, and every sampler with this ratio selects the same traces."""
        return int(trace_id[-_RANDOM_DIGITS:], 16) >= (1.0 - self.sampling_ratio) * _RANDOM_RANGE


def read_records(path: Path) -> dict[str, list[tuple[Frame, RequestRecord]]]:
    found: dict[str, list[tuple[Frame, RequestRecord]]] = {}
    stretch = read_stretch(path, 0, finished=True)
    if stretch.damage:
        logger.error("export.damaged file=%s bytes=%d", path.name, sum(end - start for start, end in stretch.damage))
    for frame in stretch.frames:
        record = frame.record()
        found.setdefault(record.project_id, []).append((frame, record))
    return found


def make_batches(
    project_id: str, records: Sequence[tuple[Frame, RequestRecord]], selection: Selection
) -> Iterator[tuple[bytes, int]]:
    rows: list[SpanRow] = []
    characters = 0
    for frame, record in records:
        spans = _spans(frame, record, selection)
        rows += spans
        characters += sum(len(text) for span in spans for text in span.attributes.values())
        if len(rows) >= MAX_SPANS or characters >= MAX_CHARACTERS:
            yield encoded(project_id, rows), len(rows)
            rows, characters = [], 0
    if rows:
        yield encoded(project_id, rows), len(rows)


def _spans(frame: Frame, record: RequestRecord, selection: Selection) -> list[SpanRow]:
    try:
        spans = request_spans(record)
        if not selection.has(spans[0].trace_id):
            return []
        if selection.include_content and spans[-1].span_kind == _CALL:
            messages = message_attributes(frame.request, chat_response(frame, record), record.finish_reason)
            spans[-1] = replace(spans[-1], attributes={**spans[-1].attributes, **messages})
    except Exception as error:
        # Records and bodies of any kind come by, and an odd one must not hold up those behind it. The error's message
        # may quote them, so it stays out of the log.
        logger.error("export.record_failed request_id=%s error=%s", record.request_id, type(error).__name__)
        return []
    return spans
