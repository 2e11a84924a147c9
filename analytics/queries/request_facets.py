"""Counts the values of the columns that lists of requests are filtered by.

Rollups answer if they know the filter: the one of kinds for most columns, that of users for users, that of spend for
API keys and teams. Otherwise the newest matching requests are counted, up to MAX_COUNTED: the metadata of ten million
requests is never read as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Final
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries.measures import OF_SPEND, OF_USERS
from analytics.queries.parallel import all_of
from analytics.queries.request_days import KIND_DAYS, KIND_FIELDS
from analytics.queries.request_filters import SIGNALS, Conditions, RequestFilter, conditions_of
from analytics.queries.rollup_ranges import (
    PLANNED,
    SPEND_HOURS,
    USER_DAYS,
    USER_HOURS,
    Key,
    Rollup,
    clamp,
    same,
    union,
)
from core.keys.services import METADATA_PREFIX

MAX_VALUES: Final = 10
MAX_COUNTED: Final = 10_000

_NO_ID = "toUUID('00000000-0000-0000-0000-000000000000')"
# The counted columns by the parameter of the list that filters by them; their values as texts, empty for none.
_KINDS: Mapping[str, str] = {
    "outcome": "toString(t.outcome)",
    "provider": "toString(t.provider)",
    "model": "toString(t.model)",
    "error_code": "toString(t.error_code)",
    "source": "toString(t.source)",
    "operation": "if(t.operation = '', 'chat', toString(t.operation))",
    "prompt_config_id": f"if(t.prompt_config_id = {_NO_ID}, '', toString(t.prompt_config_id))",
}
_USERS: Mapping[str, str] = {"user_id": "t.user_id"}
_KEYS: Mapping[str, str] = {name: f"if(t.{name} = 0, '', toString(t.{name}))" for name in ("api_key_id", "team_id")}
_NO_ROLLUP: Mapping[str, str] = {"deployment": "toString(if(t.deployment = '', t.provider, t.deployment))"}
# Of these a request may have several values: arrays of pairs of a name and a value. Each name of metadata is a facet of
# its own.
_SIGNALS = ", ".join(f"('signal', if({condition}, '{signal}', ''))" for signal, condition in SIGNALS.items())
_MANY: Mapping[str, str] = {
    "signal": f"[{_SIGNALS}]",
    "metadata": (
        f"arrayMap(x -> (x.1, concat(x.1, ':', x.2)), arrayFilter(x -> startsWith(x.1, '{METADATA_PREFIX}')"
        " AND x.2 != '', arrayZip(mapKeys(t.attributes), mapValues(t.attributes))))"
    ),
}
FACETS: Final = (
    "outcome", "provider", "model", "error_code", "user_id", "source", "operation", "prompt_config_id", "api_key_id",
    "team_id", "deployment", "signal", "metadata",
)  # fmt: skip

_BEGINNING, _END = datetime(1970, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class _Source:
    columns: Mapping[str, str]
    rollups: Sequence[Rollup]
    known: frozenset[str]


_SOURCES = (
    _Source(_KINDS, (KIND_DAYS,), KIND_FIELDS),
    _Source(_USERS, (USER_DAYS, USER_HOURS), OF_USERS),
    _Source(_KEYS, (SPEND_HOURS,), OF_SPEND),
)


@dataclass(frozen=True)
class FacetValue:
    value: str
    request_count: int


@dataclass(frozen=True)
class FacetEntry:
    """The most frequent values of one column, and the number of requests with any other value. `counted_since` is null
    if all requests were counted; otherwise older ones were not."""

    name: str
    values: list[FacetValue]
    other_count: int
    counted_since: datetime | None


@dataclass(frozen=True)
class RequestFacets:
    facets: list[FacetEntry]


@dataclass(frozen=True)
class _Row:
    name: str
    value: str
    requests: int
    named: int


@dataclass(frozen=True)
class _RowSince(_Row):
    since: datetime


def list_facets(project_id: UUID, filters: RequestFilter, *, without_own: bool = False) -> RequestFacets:
    """The facets of the matching requests, in the order of FACETS.

    `without_own` ignores each facet's own values in its filter, so that a list of checkboxes still offers the others.
    """
    own = sorted(conditions_of(filters).conditions.keys() & set(FACETS)) if without_own else []
    asked = [partial(_facets_of, project_id, filters, frozenset(FACETS) - frozenset(own))]
    asked += [partial(_facets_of, project_id, _without(filters, name), frozenset({name})) for name in own]
    found = {facet.name: facet for part in all_of([load for ask in asked for load in ask()]) for facet in part}
    return RequestFacets([found.get(name) or FacetEntry(name, [], 0, None) for name in FACETS])


def _without(filters: RequestFilter, name: str) -> RequestFilter:
    excluded = {field: values for field, values in filters.excluded.items() if field != name}
    return replace(filters, **{name: ()}, excluded=excluded)  # type: ignore[arg-type]  # every facet may have several


def _facets_of(
    project_id: UUID, filters: RequestFilter, names: frozenset[str]
) -> Iterator[Callable[[], Sequence[FacetEntry]]]:
    given = conditions_of(filters)
    fields = given.conditions.keys() - {"start", "end"}
    rest = {name: column for name, column in _NO_ROLLUP.items() if name in names}
    for source in _SOURCES:
        columns = {name: column for name, column in source.columns.items() if name in names}
        if columns and fields <= source.known:
            yield partial(_of_rollups, project_id, filters, given, columns, source.rollups)
        else:
            rest |= columns
    many = [column for name, column in _MANY.items() if name in names]
    if rest or many:
        yield partial(_of_newest, project_id, given, rest, many)


def _of_rollups(
    project_id: UUID, filters: RequestFilter, given: Conditions, columns: Mapping[str, str], rollups: Sequence[Rollup]
) -> Sequence[FacetEntry]:
    where = " AND ".join(["1", *(text for name, text in given.conditions.items() if name not in ("start", "end"))])
    start, end = clamp(filters.start or _BEGINNING), clamp(filters.end or _END)
    keys: dict[str, Key] = {f"{name}_value": same(expression) for name, expression in columns.items()}
    source, times = union(project_id, rollups, start, end, keys=keys, figures=["requests"], where=where)
    [name, *more] = columns
    if more:
        # The sums over all kinds come before a kind becomes a row for each of its values.
        values = ", ".join(keys)
        kinds = f"SELECT {values}, sum(f.requests) AS n FROM {source} AS f GROUP BY {values}"
        names = ", ".join(f"'{name}'" for name in columns)
        counted = f"({kinds}) ARRAY JOIN [{names}] AS facet, [{values}] AS text"
        sql = _commonest("facet", "text", "sum(n)", counted)
    else:
        sql = _commonest(f"'{name}'", f"f.{name}_value", "sum(f.requests)", f"{source} AS f")
    params = {**given.values, **times}
    return _facets(client.query(sql, params, row=_Row, name="requests.facets", database_settings=PLANNED))


def _of_newest(
    project_id: UUID, given: Conditions, columns: Mapping[str, str], many: Sequence[str]
) -> Sequence[FacetEntry]:
    where = " AND ".join(["t.project_id = {project:UUID}", *given.conditions.values()])
    # The first pair stands for the request itself.
    pairs = ", ".join(["('', 'any')", *(f"('{name}', {expression})" for name, expression in columns.items())])
    all_pairs = f"arrayConcat({', '.join([f'[{pairs}]', *many])})"
    newest = (
        f"SELECT {all_pairs} AS pairs, t.ts AS ts FROM requests AS t PREWHERE {where}"
        f" ORDER BY t.ts DESC LIMIT {MAX_COUNTED}"
    )
    sql = _commonest("pair.1", "pair.2", "count()", f"({newest}) ARRAY JOIN pairs AS pair", "min(ts) AS since")
    params = {**given.values, "project": project_id}
    rows = client.query(sql, params, row=_RowSince, name="requests.facets", database_settings=PLANNED)
    everything = [row for row in rows if not row.name]
    is_limited = bool(everything) and everything[0].requests >= MAX_COUNTED
    return _facets([row for row in rows if row.name], everything[0].since if is_limited else None)


def _commonest(name: str, value: str, requests: str, counted: str, *more: str) -> str:
    columns = [f"{name} AS name", f"{value} AS value", f"{requests} AS requests"]
    columns += [f"sum({requests}) OVER (PARTITION BY name) AS named", *more]
    return (
        f"SELECT {', '.join(columns)} FROM {counted} WHERE value != '' GROUP BY name, value"
        f" ORDER BY name, requests DESC, value LIMIT {MAX_VALUES} BY name"
    )


def _facets(found: Sequence[_Row], counted_since: datetime | None = None) -> Sequence[FacetEntry]:
    rows: dict[str, list[_Row]] = {}
    for row in found:
        rows.setdefault(row.name, []).append(row)
    return [_facet(name, of_name, counted_since) for name, of_name in _merged(rows).items()]


def _merged(rows: Mapping[str, list[_Row]]) -> Mapping[str, list[_Row]]:
    merged: dict[str, list[_Row]] = {}
    for name, of_name in rows.items():
        is_metadata = name.startswith(METADATA_PREFIX)
        merged.setdefault("metadata" if is_metadata else name, []).extend(of_name)
    return merged


def _facet(name: str, rows: Sequence[_Row], counted_since: datetime | None) -> FacetEntry:
    values = [
        FacetValue(row.value.removeprefix(METADATA_PREFIX) if name == "metadata" else row.value, row.requests)
        for row in rows
    ]
    named = sum({row.name: row.named for row in rows}.values())
    return FacetEntry(name, values, named - sum(row.requests for row in rows), counted_since)
