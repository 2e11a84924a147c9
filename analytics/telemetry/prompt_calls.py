"""Finds the spans of an application's own model calls with a prompt that a rollout chose for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final

from django.dispatch import Signal

from analytics.telemetry.request_spans import REQUEST_ID
from analytics.telemetry.signals import SPAN_COLUMNS

PROMPT_NAME: Final = "gen_ai.prompt.name"
PROMPT_VERSION: Final = "gen_ai.prompt.version"
CONFIG_ID: Final = "prompt_gateway.prompt.config_id"
LABEL: Final = "prompt_gateway.prompt.label"
ROLLOUT_ID: Final = "prompt_gateway.rollout_id"
ROLLOUT_STAGE: Final = "prompt_gateway.rollout_stage"
VARIANT: Final = "prompt_gateway.variant"
ALLOCATION_UNIT: Final = "prompt_gateway.allocation_unit"
ALLOCATION_FALLBACK: Final = "prompt_gateway.allocation_fallback"

_REQUIRED = frozenset({PROMPT_VERSION, CONFIG_ID, ROLLOUT_ID, VARIANT, ALLOCATION_UNIT})

prompt_calls_stored = Signal()
"""Sent with `project_id` and `calls` when spans with calls of prompts under a rollout have been stored."""


@dataclass(frozen=True, slots=True)
class PromptCall:
    """An application's own model call, as its span describes it; times in nanoseconds."""

    trace_id: str
    span_id: str
    started_ns: int
    duration_ns: int
    failed: bool
    attributes: Mapping[str, str]


_fields_of = itemgetter(
    *map(SPAN_COLUMNS.index, ("TraceId", "SpanId", "Timestamp", "Duration", "StatusCode", "SpanAttributes"))
)


def prompt_calls(rows: Iterable[tuple[Any, ...]]) -> list[PromptCall]:
    """Leaves out spans with the id of a gateway request, which is counted there."""
    found = []
    for row in rows:
        trace_id, span_id, started, duration, status, attributes = _fields_of(row)
        if attributes.keys() >= _REQUIRED and REQUEST_ID not in attributes:
            found.append(PromptCall(trace_id, span_id, started, duration, status == "Error", attributes))
    return found
