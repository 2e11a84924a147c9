"""The attempts of a request as a waterfall: what was waited for, and when the first token came."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from analytics.wire.attempts import AttemptEntry
from analytics.wire.requests import RequestDetail
from core.ui.plots import Span, Waterfall
from integrations.registry import provider_title


def attempts_waterfall(found: RequestDetail) -> Waterfall | None:
    """Returns the waterfall, or None for a request for which no provider was asked."""
    attempts = found["attempt_timeline"]
    if not attempts:
        return None
    start = found["created_at"]
    whole = Span("request", None, "request", start, _after(start, found["latency_ms"]), detail=found["outcome"])
    spans = [span for attempt in attempts for span in _spans(start, attempt)]
    return Waterfall("Attempts", [whole, *spans], caption=False)


def _spans(start: datetime, attempt: AttemptEntry) -> Iterator[Span]:
    key = f"attempt-{attempt['number']}"
    began, ended = _after(start, attempt["started_ms"]), _after(start, attempt["ended_ms"])
    result = attempt["error"] or "answered"
    status = f" {attempt['status']}" if attempt["status"] else ""
    name = f"{provider_title(attempt['provider'])} {attempt['model']}"
    yield Span(key, "request", name, began, ended, "bad" if attempt["error"] else "", detail=f"{result}{status}")
    first_token = attempt["first_token_ms"]
    if first_token is not None:
        token_at = min(max(_after(start, first_token), began), ended)
        yield Span(f"{key}-wait", key, "until the first token", began, token_at)
        yield Span(f"{key}-stream", key, "the rest of the stream", token_at, ended)


def _after(start: datetime, milliseconds: float) -> datetime:
    return start + timedelta(milliseconds=milliseconds)
