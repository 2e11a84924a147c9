from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analytics.queries.variants import TARGET
from console.rollouts.links import requests_link
from core.ui.pages import Visit
from rollouts.comparison.segments import segments_of
from rollouts.evaluation.words import odds
from rollouts.models import Rollout

_MAX_SHOWN = 20
_FILTERS = {"language": "language", "model": "requested_model", "key": "api_key_id"}
"""The filter of the request log for a dimension; the others have none."""


def segments(visit: Visit, row: Rollout) -> Mapping[str, Any]:
    found = segments_of(row)
    return {
        "rows": [{**_cells(one), "href": _requests(visit, row, one)} for one in found[:_MAX_SHOWN]],
        "count": len(found),
        "more": len(found) - _MAX_SHOWN,
        "named": [f"{_dimension(one)} {one['label']}" for one in found if one["named"]],
    }


def _requests(visit: Visit, row: Rollout, one: Mapping[str, Any]) -> str:
    """Returns an empty text if the request log has no filter for the segment."""
    name = _FILTERS.get(one["dimension"])
    return requests_link(visit, row, TARGET, **{name: one["value"]}) if name else ""


def _cells(one: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "dimension": _dimension(one).capitalize(),
        "label": one["label"],
        "named": one["named"],
        "target": _arm(one["target"]),
        "baseline": _arm(one["baseline"]),
        "evidence": odds(one["evidence"]),
        "threshold": odds(one["evidence_threshold"]),
    }


def _arm(arm: Mapping[str, Any]) -> str:
    text = f"{arm['unanswered_count']:,} of {arm['request_count']:,}"
    if broken := arm["contract_violation_count"]:
        text += f", {broken:,} broke the schema"
    return text + (f", {arm['empty_count']:,} empty" if arm["empty_count"] else "")


def _dimension(one: Mapping[str, Any]) -> str:
    return str(one["dimension"]).removeprefix("metadata.")
