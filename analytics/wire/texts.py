"""What people and models wrote, left out of answers for who may not read it: null stands in its place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

REQUEST_TEXTS = ("prompt_preview", "completion_preview")
DETAIL_TEXTS = (*REQUEST_TEXTS, "attributes", "request", "response")
# Of a row of the request log, by the names of its columns.
ROW_TEXTS = frozenset({*REQUEST_TEXTS, "attributes", "error_message"})
SCORE_TEXTS = ("reason",)
FEEDBACK_TEXTS = ("text",)
_SPAN_TEXTS = ("status_message", "attributes")
_LOG_TEXTS = ("body", "attributes")


def without(texts: Iterable[str], shown: Mapping[str, Any]) -> dict[str, Any]:
    """`shown` with null for each of the named fields that it has."""
    return {**shown, **{name: None for name in texts if name in shown}}


def request_without_texts(shown: Mapping[str, Any]) -> dict[str, Any]:
    """An entry of the request log, or one request as a whole. What was wrong is told by type and code."""
    error = shown["error"] and without(["message"], shown["error"])
    scores = {"scores": [without(SCORE_TEXTS, score) for score in shown["scores"]]} if "scores" in shown else {}
    return {**without(DETAIL_TEXTS, shown), "error": error, **scores}


def session_without_texts(shown: Mapping[str, Any]) -> dict[str, Any]:
    """A session as a whole."""
    return {**shown, "feedback": [without(FEEDBACK_TEXTS, item) for item in shown["feedback"]]}


def telemetry_without_texts(shown: Mapping[str, Any]) -> dict[str, Any]:
    """The spans and logs of a session."""
    return {
        "spans": [without(_SPAN_TEXTS, span) for span in shown["spans"]],
        "logs": [without(_LOG_TEXTS, log) for log in shown["logs"]],
    }
