"""Removes texts that people and models wrote from answers to readers without content: they become null."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

REQUEST_TEXTS = ("prompt_preview", "completion_preview")
DETAIL_TEXTS = (*REQUEST_TEXTS, "attributes", "request", "response")
SCORE_TEXTS = ("reason",)
FEEDBACK_TEXTS = ("text",)
_SPAN_TEXTS = ("status_message", "attributes")
_TEXTS_OF_LISTS = {
    "scores": SCORE_TEXTS,
    "feedback": FEEDBACK_TEXTS,
    "nodes": _SPAN_TEXTS,
    "spans": _SPAN_TEXTS,
    "logs": ("body", "attributes"),
}


def without(texts: Iterable[str], shown: Mapping[str, Any]) -> dict[str, Any]:
    return {**shown, **{name: None for name in texts if name in shown}}


def request_without_texts(shown: Mapping[str, Any]) -> dict[str, Any]:
    error = shown["error"] and without(["message"], shown["error"])
    return {**without(DETAIL_TEXTS, lists_without_texts(shown)), "error": error}


def lists_without_texts(shown: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a session, its timeline or telemetry, or a trace without the texts of the lists that it has."""
    found = {name: texts for name, texts in _TEXTS_OF_LISTS.items() if name in shown}
    return {**shown, **{name: [without(texts, item) for item in shown[name]] for name, texts in found.items()}}
