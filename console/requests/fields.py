from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final
from uuid import UUID

from django.http import QueryDict

from analytics.queries.request_facets import FacetEntry
from analytics.queries.request_filters import RequestSignal
from analytics.request_log.record import Operation, Outcome
from core.lookup.registry import Kind, as_uuid, look_up
from core.models import ApiKey, Team
from core.roles import Right
from core.ui.filters import NOT, Facet, FacetValue, FilterField, Filters
from integrations.registry import provider_title

_SHOWN_CHARACTERS = 28


def _choices(values: Sequence[str]) -> list[tuple[str, str]]:
    return [(value, value.replace("_", " ")) for value in values]


_SIGNALS: Final = (
    (RequestSignal.CONTRACT.value, "broke its contract"),
    (RequestSignal.TRUNCATED.value, "cut at the token limit"),
    (RequestSignal.FALLBACK.value, "answered by a fallback"),
    (RequestSignal.EMPTY.value, "empty answer"),
)


def _several(name: str, label: str, kind: str = "text", **rest: object) -> FilterField:
    return FilterField(name, label, kind, is_several=True, **rest)  # type: ignore[arg-type]  # fields of the class


FIELDS = (
    _several("outcome", "Outcome", "choice", choices=_choices([str(outcome) for outcome in Outcome])),
    _several("error_code", "Error code"),
    _several("signal", "Answers that", "choice", choices=_SIGNALS),
    _several("model", "Model"),
    _several("provider", "Provider"),
    _several("deployment", "Deployment"),
    _several("user_id", "User"),
    _several("session_id", "Session"),
    _several("metadata", "Metadata", help="A name and a value, such as team:search."),
    FilterField("min_latency_ms", "Slower than (ms)", "number"),
    FilterField("min_cost_usd", "Dearer than ($)", "number"),
    FilterField("min_ttft_ms", "First token later than (ms)", "number"),
    FilterField("max_latency_ms", "Faster than (ms)", "number"),
    FilterField("max_cost_usd", "Cheaper than ($)", "number"),
    FilterField("max_ttft_ms", "First token before (ms)", "number"),
    _several("operation", "Operation", "choice", choices=_choices([str(operation) for operation in Operation])),
    _several("source", "Source", help="gateway, playground, judge or agent"),
    _several("status_code", "HTTP status", "number"),
    _several("error_type", "Error type"),
    _several("requested_model", "Model asked for"),
    _several("api_key_id", "API key", "choice"),
    _several("team_id", "Team", "choice"),
    _several("prompt_config_id", "Prompt", "choice"),
    _several("prompt_version", "Version of the prompt", "number"),
    _several("rollout_id", "Rollout"),
    _several("variant", "Arm of the rollout", "choice", choices=_choices(["target", "baseline"])),
    _several("language", "Language", help="ISO 639 code, of requests of rollouts"),
    _several("client_request_id", "The client's own request id"),
)
_LABELS = {field.name: field.label for field in FIELDS}
# In this order beside the list; of the others one value alone tells nothing.
_SHOWN = (
    "outcome", "error_code", "signal", "model", "provider", "deployment", "user_id", "api_key_id", "team_id",
    "prompt_config_id", "metadata", "operation", "source",
)  # fmt: skip
_TELLING_ALONE = frozenset({"outcome", "error_code", "signal", "prompt_config_id", "metadata", "api_key_id", "team_id"})
_DELETED = {"api_key_id": "deleted key {}", "team_id": "deleted team {}"}
_MAX_CHOICES = 200


def named_fields(project_id: UUID, query: QueryDict, prompts: Iterable[tuple[UUID, str]]) -> Sequence[FilterField]:
    """Keys, teams and prompts are chosen by name; chips show the names of rollouts."""
    keys = ApiKey.objects.for_project(project_id).order_by("name").values_list("pk", "name")[:_MAX_CHOICES]
    teams = Team.objects.for_project(project_id).order_by("name").values_list("pk", "name")[:_MAX_CHOICES]
    choices: Mapping[str, list[tuple[str, str]]] = {
        "team_id": [(str(pk), name) for pk, name in teams],
        "api_key_id": [(str(pk), name) for pk, name in keys],
        "prompt_config_id": [(str(pk), name) for pk, name in list(prompts)[:_MAX_CHOICES]],
        "rollout_id": list(_rollout_names(project_id, _chosen(query, "rollout_id")).items()),
    }
    return [replace(field, choices=choices[field.name]) if field.name in choices else field for field in FIELDS]


def facets_of(entries: Sequence[FacetEntry], query: QueryDict, fields: Sequence[FilterField]) -> Filters:
    """Returns the most frequent values with their counts, as links. `fields` have the names of ids."""
    by_name = {entry.name: entry for entry in entries}
    names = {field.name: dict(field.choices) for field in fields}
    facets = [
        facet
        for name in _SHOWN
        if name in by_name and _is_telling(by_name[name], by_name["provider"], query)
        for facet in _facets(name, by_name[name], names[name])
    ]
    return Filters(fields, query, facets=facets)


def _is_telling(entry: FacetEntry, provider: FacetEntry, query: QueryDict) -> bool:
    name, values = entry.name, {one.value for one in entry.values}
    if _chosen(query, name):
        return True
    if name == "deployment" and values == {one.value for one in provider.values}:
        return False
    return len(values) >= (1 if name in _TELLING_ALONE else 2)


def _facets(name: str, entry: FacetEntry, names: Mapping[str, str]) -> Sequence[Facet]:
    if name != "metadata":
        found = [
            FacetValue(one.value, one.request_count, names.get(one.value) or _unnamed(name, one.value))
            for one in entry.values
        ]
        return [Facet(name, _LABELS[name], found)]
    by_key: dict[str, list[FacetValue]] = {}
    for one in entry.values:
        key, _, value = one.value.partition(":")
        by_key.setdefault(key, []).append(FacetValue(one.value, one.request_count, _short(value)))
    return [Facet(name, f"Metadata: {key}", values) for key, values in by_key.items()]


def _unnamed(name: str, value: str) -> str:
    if name == "provider":
        return provider_title(value)
    return _DELETED[name].format(value) if name in _DELETED else _short(value)


def _chosen(query: QueryDict, name: str) -> list[str]:
    return [*query.getlist(name), *query.getlist(f"{NOT}{name}")]


def _rollout_names(project_id: UUID, ids: Iterable[str]) -> Mapping[str, str]:
    found = (look_up(project_id, key, [Right.READ], [Kind.ROLLOUT]) for key in ids if as_uuid(key))
    return {match.id: match.label for matches in found for match in matches}


def _short(value: str) -> str:
    return value if len(value) <= _SHOWN_CHARACTERS else f"{value[:_SHOWN_CHARACTERS]}…"
