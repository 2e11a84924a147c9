"""The filters that the page of requests offers, and the facets beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from django.http import QueryDict

from analytics.request_log.record import Operation, Outcome
from analytics.wire.request_figures import FacetEntry
from core.lookup.registry import Kind, as_uuid, look_up
from core.roles import Right
from core.ui.filters import Facet, FacetValue, FilterField, Filters

_SHOWN_VALUES = 5
_SHOWN_CHARACTERS = 28


def _choices(values: Sequence[str]) -> list[tuple[str, str]]:
    return [(value, value.replace("_", " ")) for value in values]


FIELDS = (
    FilterField("outcome", "Outcome", "choice", _choices([str(outcome) for outcome in Outcome])),
    FilterField("user_id", "User"),
    FilterField("session_id", "Session"),
    FilterField("provider", "Provider"),
    FilterField("model", "Model"),
    FilterField("error_code", "Error code"),
    FilterField("min_latency_ms", "Slower than (ms)", "number"),
    FilterField("min_cost_usd", "Dearer than ($)", "number"),
    FilterField("min_ttft_ms", "First token later than (ms)", "number"),
    FilterField("max_latency_ms", "Faster than (ms)", "number"),
    FilterField("max_cost_usd", "Cheaper than ($)", "number"),
    FilterField("max_ttft_ms", "First token before (ms)", "number"),
    FilterField("operation", "Operation", "choice", _choices([str(operation) for operation in Operation])),
    FilterField("source", "Source", help="gateway, playground, judge or agent"),
    FilterField("status_code", "HTTP status", "number"),
    FilterField("error_type", "Error type"),
    FilterField("requested_model", "Model asked for"),
    FilterField("deployment", "Deployment"),
    FilterField("api_key_id", "Number of the API key", "number"),
    FilterField("team_id", "Number of the team", "number"),
    FilterField("prompt_config_id", "Id of the prompt"),
    FilterField("prompt_version", "Version of the prompt", "number"),
    FilterField("rollout_id", "Id of the rollout"),
    FilterField("variant", "Arm of the rollout", "choice", _choices(["target", "baseline"])),
    FilterField("language", "Language", help="ISO 639 code, of requests of rollouts"),
    FilterField("client_request_id", "The client's own request id"),
)

_LABELS = {field.name: field.label for field in FIELDS} | {"prompt_config_id": "Prompt"}


# Filters whose values are ids of records that people know by name.
_NAMED = {"prompt_config_id": Kind.PROMPT, "rollout_id": Kind.ROLLOUT}


def named_fields(project_id: UUID, query: QueryDict) -> Sequence[FilterField]:
    """Returns the fields, whose chips have the names of chosen prompts and rollouts."""
    return [
        replace(field, choices=list(_names(project_id, field.name, [query.get(field.name, "")]).items()))
        if field.name in _NAMED
        else field
        for field in FIELDS
    ]


def facets_of(project_id: UUID, entries: Sequence[FacetEntry], query: QueryDict) -> Filters:
    """Returns the commonest values with their counts as links. What has one value alone tells nothing and is left
    out, unless it is chosen."""
    facets = [
        Facet(
            entry["name"],
            _LABELS[entry["name"]],
            _facet_values(project_id, entry),
        )
        for entry in entries
        if len(entry["values"]) > 1 or query.get(entry["name"])
    ]
    return Filters(FIELDS, query, facets=facets)


def _facet_values(project_id: UUID, entry: FacetEntry) -> Sequence[FacetValue]:
    shown = entry["values"][:_SHOWN_VALUES]
    names = _names(project_id, entry["name"], [value["value"] for value in shown])
    return [
        FacetValue(value["value"], value["request_count"], _short(names.get(value["value"], value["value"])))
        for value in shown
    ]


def _names(project_id: UUID, field: str, ids: Iterable[str]) -> Mapping[str, str]:
    """Returns the names of records by id, for a field that filters by such ids; deleted records have none."""
    if field not in _NAMED:
        return {}
    found = (look_up(project_id, key, [Right.READ], [_NAMED[field]]) for key in ids if as_uuid(key))
    return {match.id: match.label for matches in found for match in matches}


def _short(value: str) -> str:
    return value if len(value) <= _SHOWN_CHARACTERS else f"{value[:_SHOWN_CHARACTERS]}…"
