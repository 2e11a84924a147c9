"""The declaration of the record is the table of the log's columns: the store and the API have what it says."""

from __future__ import annotations

from typing import Any, get_type_hints

import pytest
from rest_framework.test import APIClient

from analytics.clickhouse import client
from analytics.request_log.columns import RECORDED
from analytics.request_log.record import LoggedRequest, RequestEntry
from core.models import Project
from tests.factories.analytics import make_entry, store

_STORED = {name: column.type for name, column in RECORDED.items() if name != "retention_days"}
_KEPT = {name: column.type for name, column in RECORDED.items() if column.is_kept}
_TIMES = {"drop_date": "Date", "recorded_at": "DateTime64(3, 'UTC')"}
_LATER = {"figures_later": "Bool"}
_TEXTS = dict.fromkeys(["prompt", "completion", "request", "response"], "String")
_SHARED = {"shared": "Array(UUID)", "shared_at": "UInt32", "shared_bytes": "UInt32", "opening": "String"}
_PREVIEWS = dict.fromkeys(["prompt_preview", "completion_preview"], "String")


@pytest.mark.parametrize(
    ("table", "columns"),
    [
        ("ingest", {**_STORED, "retention_days": "UInt16", "spans_derived": "Bool", **_LATER, **_TEXTS, **_SHARED}),
        ("requests", {**_STORED, "spans_derived": "Bool", **_LATER, **_PREVIEWS, **_TIMES}),
        ("anonymised", {**_KEPT, **_TIMES, "had_user": "Bool"}),
    ],
)
def test_table__of_requests__has_the_columns_of_the_record(
    clickhouse: None, table: str, columns: dict[str, str]
) -> None:
    described = client.execute(f"DESCRIBE TABLE {table}")

    assert {name: type for name, type, kind, *_ in described if kind != "MATERIALIZED"} == columns


def _values() -> dict[str, Any]:
    """Returns a value for each column, different from its default and, but for flags, from all others."""
    types = get_type_hints(LoggedRequest)
    made: dict[str, Any] = {}
    for number, name in enumerate(LoggedRequest.__struct_fields__, start=1):
        made[name] = name if types[name] is str else types[name](number)
    return made


def test_request__value_in_every_column__is_answered(
    clickhouse: None, spool: Any, api: APIClient, project: Project
) -> None:
    values = _values()
    entry = make_entry(project_id=str(project.pk), **values)
    store(spool, entry)

    answer = api.get(f"/api/llm/requests/{entry.record.request_id}").json()

    renamed = {"native": "is_native", "stream": "is_stream", "cache": "cache_status"}
    answered = {renamed.get(name, name): value for name, value in answer.items()}
    shown = values.keys() & {renamed.get(name, name) for name in RequestEntry.__annotations__}
    assert {name: answered[name] for name in shown} == {name: values[name] for name in shown}
    assert values.keys() - shown == {"error_type", "error_code", "error_message", "cost_known"}
    assert answer["error"] == {"type": "error_type", "code": "error_code", "message": "error_message"}


def test_entry__names_of_columns__have_their_types() -> None:
    """The entry is made by name, so that a type checker does not see it."""
    entry, logged = get_type_hints(RequestEntry), get_type_hints(LoggedRequest)

    for name in entry.keys() & logged.keys():
        assert entry[name] in (logged[name], logged[name] | None), name
