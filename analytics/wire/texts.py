"""Removes texts that people and models wrote from answers to readers without content: they become null."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

REQUEST_TEXTS = ("prompt_preview", "completion_preview")
DETAIL_TEXTS = (*REQUEST_TEXTS, "attributes", "request", "response")
SCORE_TEXTS = ("reason",)
FEEDBACK_TEXTS = ("text",)
_SPAN_TEXTS = ("status_message", "attributes")
_LOG_TEXTS = ("body", "attributes")


def without(texts: Iterable[str], shown: Mapping[str, Any]) -> dict[str, Any]:
    """Returns `shown` with null in each of the named fields that it has."""
    return {**shown, **{name: None for name in texts if name in shown}}


def request_without_texts(shown: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an entry of the request log, or a whole request, without texts. Type and code of its error stay."""
    error = shown["error"] and without(["message"], shown["error"])
    said = {
        name: [without(texts, item) for item in shown[name]]
        for name, texts in (("scores", SCORE_TEXTS), ("feedback", FEEDBACK_TEXTS))
        if name in shown
    }
    return {**without(DETAIL_TEXTS, shown), "error": error, **said}


def session_without_texts(shown: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a whole session without the texts of its feedback."""
    return {**shown, "feedback": [without(FEEDBACK_TEXTS, item) for item in shown["feedback"]]}


def timeline_without_texts(shown: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the timeline of a session without attributes and messages of its nodes."""
    return {**shown, "nodes": [without(_SPAN_TEXTS, node) for node in shown["nodes"]]}


def trace_without_texts(shown: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a trace without attributes and messages of its nodes and the texts of its logs."""
    return {**timeline_without_texts(shown), "logs": [without(_LOG_TEXTS, log) for log in shown["logs"]]}


def telemetry_without_texts(shown: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the spans and logs of a session without their attributes, bodies and messages."""
    return {
        "spans": [without(_SPAN_TEXTS, span) for span in shown["spans"]],
        "logs": [without(_LOG_TEXTS, log) for log in shown["logs"]],
    }
