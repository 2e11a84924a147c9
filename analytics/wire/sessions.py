from __future__ import annotations

from dataclasses import dataclass

from analytics.queries.sessions import SessionFigures, SessionSums
from analytics.wire.feedback import FeedbackEntry


@dataclass(frozen=True)
class SessionEntry(SessionSums):
    """`feedback_score` is the mean of the scores, null without any."""

    feedback_score: float | None


@dataclass(frozen=True)
class SessionTokens:
    prompt_tokens: int
    completion_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    total_tokens: int


@dataclass(frozen=True)
class SessionDetail(SessionFigures):
    feedback_score: float | None
    tokens: SessionTokens
    feedback: list[FeedbackEntry]
