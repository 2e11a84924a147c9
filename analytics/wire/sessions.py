"""The JSON of sessions."""

from __future__ import annotations

from datetime import datetime
from typing import TypedDict

from analytics.queries.sessions import SessionRow, SessionSummary
from analytics.wire.feedback import FeedbackEntry


class SessionEntry(TypedDict):
    session_id: str
    user_id: str
    started_at: datetime
    ended_at: datetime
    request_count: int
    total_tokens: int
    total_cost_usd: float
    error_count: int
    unpriced_request_count: int
    feedback_score: float | None


class SessionTokens(TypedDict):
    prompt_tokens: int
    completion_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    total_tokens: int


class SessionDetail(SessionEntry):
    tokens: SessionTokens
    cancelled_count: int
    duration_seconds: float
    average_latency_ms: float
    models_used: list[str]
    providers_used: list[str]
    operations_used: list[str]
    users: list[str]
    feedback: list[FeedbackEntry]


def session_entry(row: SessionSummary, feedback_score: float | None) -> SessionEntry:
    """Returns a session as lists show it. `feedback_score` is the mean of the scores, None without any; `user_id` is
    the first of the users by name."""
    return {
        "session_id": row.session_id,
        "user_id": row.users[0] if row.users else "",
        "started_at": row.started_at,
        "ended_at": row.ended_at,
        "request_count": row.request_count,
        "total_tokens": row.prompt_tokens + row.completion_tokens,
        "total_cost_usd": float(row.cost_usd),
        "error_count": row.error_count,
        "unpriced_request_count": row.unpriced_count,
        "feedback_score": feedback_score,
    }


def session_detail(row: SessionRow, feedback_score: float | None, feedback: list[FeedbackEntry]) -> SessionDetail:
    timed = row.request_count - row.batched_count
    return {
        **session_entry(row, feedback_score),
        "tokens": {
            "prompt_tokens": row.prompt_tokens,
            "completion_tokens": row.completion_tokens,
            "cache_read_tokens": row.cache_read_tokens,
            "cache_write_tokens": row.cache_write_tokens,
            "total_tokens": row.prompt_tokens + row.completion_tokens,
        },
        "cancelled_count": row.cancelled_count,
        "duration_seconds": (row.ended_at - row.started_at).total_seconds(),
        "average_latency_ms": row.latency_sum_ms / timed if timed else 0.0,
        "models_used": row.models,
        "providers_used": row.providers,
        "operations_used": row.operations,
        "users": row.users,
        "feedback": feedback,
    }
