"""Finds the results of evaluations among exported events: scores of requests, sessions and users."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Any, Final

from django.dispatch import Signal

from analytics.telemetry.request_spans import REQUEST_ID
from analytics.telemetry.signals import LOG_COLUMNS

EVENT: Final = "gen_ai.evaluation.result"
_SUBJECTS: Mapping[str, tuple[str, ...]] = {
    "request_id": (REQUEST_ID,),
    "session_id": ("session.id", "gen_ai.conversation.id"),
    "user_id": ("user.id", "enduser.id"),
}
_BOOLEANS = {"true": True, "false": False}

evaluation_results_stored = Signal()
"""Sent with `project_id`, `actor` and `scores`, each as the body of a request has it, when their events are stored."""

_fields_of = itemgetter(*map(LOG_COLUMNS.index, ("RecordId", "EventName", "LogAttributes")))


def evaluation_results(rows: Iterable[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """Leaves out results that name no request, session or user, or have no value."""
    events = (_fields_of(row) for row in rows)
    scores = (_score(record_id, attributes) for record_id, name, attributes in events if name == EVENT)
    return [score for score in scores if score is not None]


def _score(record_id: Any, attributes: Mapping[str, str]) -> dict[str, Any] | None:
    named = ((field, attributes.get(name)) for field, names in _SUBJECTS.items() for name in names)
    field, subject = next(((field, one) for field, one in named if one), ("", ""))
    text = attributes.get("gen_ai.evaluation.score.value", "")
    value = _BOOLEANS.get(text, _number(text))
    if not subject or value is None:
        return None
    score = {
        field: subject,
        "score_name": attributes.get("gen_ai.evaluation.name"),
        "score_value": value,
        "score_type": "boolean" if text in _BOOLEANS else "number",
        "reason": attributes.get("gen_ai.evaluation.explanation"),
    }
    # An export that is sent again makes no second score.
    return {**score, "score_id": f"otlp:{record_id}"} if field == "request_id" else score


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
