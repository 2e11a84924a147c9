"""Sessions on the wire."""

from __future__ import annotations

from typing import Any

from analytics.queries.sessions import SessionRow


def session_entry(row: SessionRow) -> dict[str, Any]:
    return {
        "session_id": row.session_id,
        "user_id": row.user_id,
        "started_at": row.started_at,
        "ended_at": row.ended_at,
        "request_count": row.request_count,
        "total_tokens": row.prompt_tokens + row.completion_tokens,
        "total_cost_usd": float(row.cost_usd),
        "error_count": row.error_count,
        "unpriced_request_count": row.unpriced_count,
        "feedback_score": None,
    }


def session_detail(row: SessionRow) -> dict[str, Any]:
    return {
        **session_entry(row),
        "tokens": {
            "prompt_tokens": row.prompt_tokens,
            "completion_tokens": row.completion_tokens,
            "cache_read_tokens": row.cache_read_tokens,
            "cache_write_tokens": row.cache_write_tokens,
            "total_tokens": row.prompt_tokens + row.completion_tokens,
        },
        "average_latency_ms": row.latency_sum_ms / row.request_count,
        "models_used": row.models,
        "feedback": [],
    }
