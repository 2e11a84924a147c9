from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from analytics.clickhouse import client
from analytics.models import SCORE_LABEL_CHARACTERS, CopyWithdrawal, Feedback, Score, ScoreType
from analytics.scores.sync.requests import ScoredRequest

CHUNK = 2000


def insert(table: str, columns: Sequence[str], copies: Sequence[tuple[Any, ...]]) -> None:
    if not copies:
        return
    # The token depends on the ids and versions of the rows alone, so that the same rows sent again are the same insert.
    place = columns.index("id"), columns.index("version")
    revisions = ",".join(f"{row[place[0]]}:{row[place[1]]}" for row in copies)
    client.insert(table, columns, copies, token=hashlib.sha256(revisions.encode()).hexdigest())


KEY = ("project_id", "ts", "id")
STATE = ("version", "is_deleted", "drop_date")
SCORES = (
    *KEY, *STATE, "request_id", "score_name", "score_type", "evaluator_type", "score_value", "score_label",
    "request_known", "provider", "model", "prompt_config_id", "prompt_version", "rollout_id", "variant",
)  # fmt: skip
FEEDBACK = (
    *KEY, *STATE, "session_id", "score", "has_text", "edited",
    "request_id", "request_known", "request_ts", "request_drop_date", "source", "outcome",
    "provider", "model", "prompt_config_id", "prompt_version", "rollout_id", "variant",
)  # fmt: skip
WITHDRAWALS = (*KEY, *STATE)

# Copies are kept as long as requests are at most, by default.
_RETENTION = timedelta(days=400)
# The version of a withdrawal is above every version that a row can get.
_WITHDRAWN = 2**63
_NO_UUID = UUID(int=0)
_UNKNOWN = ScoredRequest(_NO_UUID, "", "", _NO_UUID, 0, _NO_UUID, "")


def score_row(score: Score, request: ScoredRequest | None) -> tuple[Any, ...]:
    """A row with a known request has a higher version, so that it replaces the one without."""
    known = request or _UNKNOWN
    version = 2 * score.revision + (request is not None)
    return (
        *_key(score.project_id, score.created_at, score.pk),
        version, 0, _drop_date(score.created_at),
        score.request_id, score.score_name, score.score_type, score.evaluator_type, score.score_value, _label(score),
        request is not None, known.provider, known.model,
        known.prompt_config_id, known.prompt_version, known.rollout_id, known.variant,
    )  # fmt: skip


def feedback_row(row: Feedback, request: ScoredRequest | None, *, is_settled: bool) -> tuple[Any, ...]:
    """`score` 0 means none. A settled row has a higher version, so that it replaces the one from before."""
    known = request or _UNKNOWN
    return (
        *_key(row.project_id, row.created_at, row.pk),
        1 + is_settled, 0, _drop_date(row.created_at),
        row.session_id, row.score or 0, bool(row.text), row.edited,
        row.request_id or _NO_UUID, request is not None, known.ts, known.drop_date, known.source, known.outcome,
        known.provider, known.model,
        known.prompt_config_id, known.prompt_version, known.rollout_id, known.variant,
    )  # fmt: skip


def withdrawal_row(row: CopyWithdrawal) -> tuple[Any, ...]:
    """Returns a row that replaces every version of the withdrawn row, also one that is stored later."""
    return (*_key(row.project_id, row.row_created_at, row.row_id), _WITHDRAWN, 1, _drop_date(row.row_created_at))


def _key(project_id: UUID, made_at: datetime, row_id: UUID) -> tuple[UUID, datetime, UUID]:
    return project_id, made_at, row_id


def _drop_date(made_at: datetime) -> Any:
    return (made_at + _RETENTION).date()


def _label(score: Score) -> str:
    """Returns a category score's label, or else its reason, unless that is a long explanation."""
    if score.score_type != ScoreType.CATEGORY or score.score_label or len(score.reason) > SCORE_LABEL_CHARACTERS:
        return score.score_label
    return score.reason
