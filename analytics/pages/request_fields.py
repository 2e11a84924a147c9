"""The filters that the page of requests offers, and the facets beside them."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import QueryDict

from analytics.contracts import Operation, Outcome
from analytics.wire.request_figures import FacetEntry
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
    FilterField("api_key_id", "Number of the API key", "number"),
    FilterField("prompt_config_id", "Id of the prompt"),
    FilterField("prompt_version", "Version of the prompt", "number"),
    FilterField("rollout_id", "Id of the rollout"),
    FilterField("variant", "Arm of the rollout", "choice", _choices(["target", "baseline"])),
    FilterField("client_request_id", "The client's own request id"),
)

_LABELS = {field.name: field.label for field in FIELDS} | {"prompt_config_id": "Prompt"}


def facets_of(entries: Sequence[FacetEntry], query: QueryDict) -> Filters:
    """Returns the commonest values with their counts as links. What has one value alone tells nothing and is left
    out, unless it is chosen."""
    facets = [
        Facet(
            entry["name"],
            _LABELS[entry["name"]],
            [
                FacetValue(value["value"], value["request_count"], _short(value["value"]))
                for value in entry["values"][:_SHOWN_VALUES]
            ],
        )
        for entry in entries
        if len(entry["values"]) > 1 or query.get(entry["name"])
    ]
    return Filters(FIELDS, query, facets=facets)


def _short(value: str) -> str:
    return value if len(value) <= _SHOWN_CHARACTERS else f"{value[:_SHOWN_CHARACTERS]}…"
