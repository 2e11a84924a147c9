from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import TypeVar
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries.rollup_ranges import (
    DAYS,
    ERROR_DAYS,
    HOURS,
    IS_EARLIER,
    SPEND_HOURS,
    Key,
    Span,
    same,
)
from analytics.queries.summed import BY_COST, Costs, Scope, Sums, TimedSums, TokenCosts, count_keys, nothing, summed
from core.wire.shown import seen_as

_PAGE = "LIMIT {limit:UInt64} OFFSET {offset:UInt64}"
_MODEL = {"model": same("toString(t.model)")}
_MODELS = {**_MODEL, "provider": same("toString(t.provider)")}
# Single requests are grouped before they are put beside the rows of the rollups.
_PROVIDER = {"provider": same("toString(t.provider)")}
_OPERATION = {"operation": same("if(t.operation = '', 'chat', toString(t.operation))")}


@dataclass(frozen=True)
class Totals(TimedSums):
    start_date: datetime
    end_date: datetime


@dataclass(frozen=True)
class _Period(TimedSums):
    is_earlier: int


def get_totals(scope: Scope) -> Totals:
    [row] = summed(TimedSums, scope.of(DAYS, HOURS, keys=_PROVIDER), name="totals")
    return seen_as(Totals, row, start_date=scope.start, end_date=scope.end)


def get_totals_compared(scope: Scope, earlier: Span) -> tuple[TimedSums, TimedSums]:
    source = scope.of(DAYS, HOURS, keys={**_PROVIDER, "is_earlier": IS_EARLIER}, earlier=earlier)
    rows = summed(_Period, source, by=["is_earlier"], name="totals.compared")
    found = {row.is_earlier: seen_as(TimedSums, row) for row in rows}
    none = nothing(TimedSums)
    return found.get(0, none), found.get(1, none)


@dataclass(frozen=True)
class OperationFigures(TimedSums):
    operation: str


def list_operations(scope: Scope) -> Sequence[OperationFigures]:
    """By falling cost, then falling requests, then name."""
    source = scope.of(DAYS, HOURS, keys=_OPERATION)
    return summed(OperationFigures, source, by=_OPERATION, tail=f"{BY_COST}, operation", name="operations")


@dataclass(frozen=True)
class ModelFigures(TimedSums):
    model: str
    provider: str


@dataclass(frozen=True)
class OfferFigures:
    """The figures by which models are chosen; shares and percentiles are None without a request."""

    model: str
    provider: str
    request_count: int
    total_cost_usd: Decimal
    error_rate: float | None
    p50_latency_ms: float | None
    p95_latency_ms: float | None
    p50_ttft_ms: float | None
    tokens_per_second: float | None


ModelRow = TypeVar("ModelRow", ModelFigures, OfferFigures)


def list_models(scope: Scope, *, row: type[ModelRow], limit: int, offset: int = 0) -> tuple[int, list[ModelRow]]:
    """The number of models and one page of them, by falling cost, then falling requests, then name. Requests without a
    model are counted under empty names."""
    source = scope.of(DAYS, HOURS, keys=_MODELS)
    page, order = {"limit": limit, "offset": offset}, f"{BY_COST}, model, provider {_PAGE}"
    rows = summed(row, source, by=_MODELS, tail=order, values=page, name="models.page")
    if len(rows) < limit and (rows or not offset):
        return offset + len(rows), rows
    return count_keys(source, _MODELS, name="models.count"), rows


@dataclass(frozen=True)
class ModelCosts(TokenCosts):
    """The cost of one model at all its `providers`."""

    model: str
    providers: list[str]


@dataclass(frozen=True)
class ModelCost(ModelCosts):
    percentage: float


def list_model_costs(scope: Scope) -> tuple[Decimal, list[ModelCost]]:
    """The total cost, and each model with its share in percent, by falling cost, then falling requests, then name."""
    source = scope.plain(keys=_MODELS)
    providers = {"providers": "arraySort(groupUniqArrayIf(f.provider, f.provider != ''))"}
    rows = summed(ModelCosts, source, by=_MODEL, inner=providers, tail=f"{BY_COST}, model", name="costs.models")
    total = sum((row.total_cost_usd for row in rows), Decimal(0))
    return total, [seen_as(ModelCost, row, percentage=percentage(row.total_cost_usd, total)) for row in rows]


def percentage(cost: Decimal, total: Decimal) -> float:
    """0 if nothing was spent."""
    return float(100 * cost / total) if total else 0.0


@dataclass(frozen=True)
class ModelTotals(Costs):
    model: str


@dataclass(frozen=True)
class Overview:
    """The overview of a project; costs are the known ones."""

    start_date: datetime
    end_date: datetime
    total_requests: int
    total_sessions: int
    total_users: int
    total_tokens: int
    total_cost_usd: Decimal
    error_count: int
    cancelled_count: int
    unpriced_request_count: int
    error_rate: float
    average_latency_ms: float
    top_models: list[ModelTotals]


def get_sums(scope: Scope) -> Sums:
    return summed(Sums, scope.plain(keys=_PROVIDER), name="sums")[0]


def get_sums_by_model(scope: Scope, *, limit: int) -> tuple[Sums, list[ModelTotals]]:
    source, values = scope.plain(keys=_MODEL), {"limit": limit}
    order = "WHERE model != '' ORDER BY requests DESC, model LIMIT {limit:UInt64}"
    models = summed(ModelTotals, source, by=_MODEL, tail=order, values=values, name="overview.models")
    return get_sums(scope), models


class PromptGrouping(StrEnum):
    CONFIG = "config"
    VERSION = "version"


@dataclass(frozen=True)
class PromptFigures(Sums):
    """The requests of one version of a config, or those of all its versions where that is null."""

    prompt_config_id: UUID
    prompt_version: int | None


_VERSION = {
    PromptGrouping.CONFIG: Key("toUInt32(0)", "toUInt32(0)"),
    PromptGrouping.VERSION: same("t.prompt_version"),
}


def list_prompt_figures(
    scope: Scope, grouping: PromptGrouping, *, prompt_config_id: UUID | None = None
) -> Sequence[PromptFigures]:
    """The groups that served a request, by falling requests, then falling cost, then config and version.

    Leaves out requests that named a config and got no version of it.
    """
    where, values = "t.prompt_version > 0", {}
    if prompt_config_id is not None:
        where, values = f"{where} AND t.prompt_config_id = {{config:UUID}}", {"config": prompt_config_id}
    keys = {"prompt_config_id": same("t.prompt_config_id"), "prompt_version": _VERSION[grouping]}
    # The rollup by minute knows prompts as well, and has a row for each minute of each model.
    return summed(
        PromptFigures,
        scope.of(SPEND_HOURS, keys=keys, where=where),
        by=keys,
        outer={"prompt_version": "nullIf(prompt_version, 0)"},
        tail="ORDER BY requests DESC, cost_usd DESC, prompt_config_id, prompt_version",
        values=values,
        name="prompts.figures",
    )


@dataclass(frozen=True)
class UnpricedModel:
    provider: str
    model: str
    unpriced_request_count: int
    request_count: int
    total_tokens: int


def list_price_gaps(scope: Scope) -> Sequence[UnpricedModel]:
    """By falling number of requests without a price, then by name."""
    source = scope.plain(keys=_MODELS, where="t.model != ''")
    order = "WHERE unpriced > 0 ORDER BY unpriced DESC, provider, model"
    return summed(UnpricedModel, source, by=_MODELS, tail=order, name="spend.gaps")


def list_free_models(scope: Scope) -> Sequence[UnpricedModel]:
    """The models whose tokens cost nothing, by name."""
    source = scope.plain(keys=_MODELS, where="t.model != ''")
    order = "WHERE unpriced = 0 AND cost_usd = 0 ORDER BY provider, model"
    rows = summed(UnpricedModel, source, by=_MODELS, also=["unpriced", "cost_usd"], tail=order, name="spend.free")
    return [row for row in rows if row.total_tokens]


@dataclass(frozen=True)
class Errors:
    """`provider` is empty if the request reached none; the percentage is of all requests."""

    provider: str
    type: str
    code: str
    status_codes: list[int]
    error_count: int
    percentage: float
    last_seen: datetime


@dataclass(frozen=True)
class ErrorKind(Errors):
    models: list[str]


_ERROR_KEYS = {
    **_PROVIDER,
    "type": same("toString(t.error_type)"),
    "code": same("toString(t.error_code)"),
}


def list_error_kinds(scope: Scope) -> Sequence[ErrorKind]:
    """The most frequent first, then by provider and name."""
    return summed(
        ErrorKind,
        scope.of(
            ERROR_DAYS,
            keys={**_ERROR_KEYS, **_MODEL, "status_code": same("t.status_code")},
            where_request="t.outcome IN ('error', 'interrupted')",
        ),
        by=_ERROR_KEYS,
        inner={
            "status_codes": "arraySort(groupUniqArray(f.status_code))",
            "models": "arraySort(groupUniqArrayIf(f.model, f.model != ''))",
        },
        also=["requests"],
        outer={"error_count": "requests", "percentage": "100 * requests / sum(requests) OVER ()"},
        tail="ORDER BY requests DESC, provider, type, code",
        name="errors",
    )


@dataclass(frozen=True)
class ServedVersion:
    """A version and its stored requests; `last_minute` is the UTC minute of the latest request."""

    version: int
    requests: int
    last_minute: datetime


_SERVED = """
SELECT m.prompt_version AS version, sum(m.requests) AS requests, max(m.minute) AS last_minute
FROM requests_minute AS m
WHERE m.project_id = {project:UUID} AND m.prompt_config_id = {config:UUID} AND m.prompt_version > 0
GROUP BY version ORDER BY version
"""


def served_versions(project_id: UUID, config_id: UUID) -> Sequence[ServedVersion]:
    """Returns the versions of a prompt config that were served at least once."""
    return client.query(
        _SERVED, {"project": project_id, "config": config_id}, row=ServedVersion, name="prompt_versions"
    )
