"""A body means the same in every framing of HTTP: with a Content-Length, and in chunks without one.

Every operation of the OpenAPI document that takes a body gets one both ways, small, padded to 3 MiB, and empty. By day
one operation of each way to read a body gets the padded one.
Django's operations run in this process, so that what a call has changed can be compared row by row and undone; those of
the gateway and the agent are sent to a worker.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.apps import apps
from django.db import connection, models, transaction
from pytest_django import DjangoDbBlocker

from config.asgi import application
from core.openapi.views import document
from integrations.access.credentials import store_secret
from integrations.models import ProviderIntegration
from tests.night import cases
from tests.openapi.conftest import Populated
from tests.openapi.routes import channels_paths, operations
from tests.openapi.schemas import example

MEGABYTE = 1 << 20
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d[\d:.]*|\b\d{10}:[\w-]+")
_BLANK_LINE = b" " * 63 + b"\n"
_WRITES = """
SELECT relname, pg_stat_get_xact_tuples_inserted(oid) + pg_stat_get_xact_tuples_updated(oid)
    + pg_stat_get_xact_tuples_deleted(oid)
FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
"""
# Bodies that change something where the least that the document asks for changes nothing.
TELLING: dict[str, dict[str, Any]] = {
    "putSettings": {"retry_max_attempts": 5, "monthly_budget_usd": 100, "guardrails": {"trust_mode": "enforce"}},
    "updateIntegration": {"enabled": False},
    "testIntegration": {"api_key": "another"},
    "rotateApiKey": {"grace_seconds": 0},
    "changeApiKey": {"monthly_budget_usd": 5},
    "changeEndUserLimit": {"rate_limit_rpm": 7},
    "changeTeam": {"rate_limit_rpm": 7},
    "replaceTeamMembers": {"members": []},
    "createTraceDestination": {"endpoint": "http://127.0.0.1:9"},
    "changeTraceDestination": {"name": "another", "endpoint": "http://127.0.0.1:9"},
    "changeAlert": {"threshold": 7},
    "changeAlertChannel": {"name": "another"},
    "changeMember": {"role": "editor"},
    "updatePromptConfig": {"description": "another"},
    "createConversation": {"title": "a title"},
    "createPromptVersion": {"system_prompt": "Answer in one line."},
    "createFeedbackToken": {"expires_in": 60},
    "scoreReviewItem": {"score_value": 1},
}
Operation = tuple[str, str]
# By table its columns, by their names.
Tables = dict[str, dict[str, Any]]


JSON, LINES = "application/json", "application/x-ndjson"


def media_type_of(operation: Operation) -> str:
    method, path = operation
    described = document()["paths"][path][method]
    return str(next(iter(described.get("requestBody", {}).get("content", {})), JSON))


def bodied(*, by_django: bool) -> list[Operation]:
    return [
        (found.method, found.path)
        for found in operations()
        if "requestBody" in found.described and (found.path not in channels_paths()) is by_django
    ]


# By day: a JSON object, lines of JSON, and an export of OpenTelemetry.
PADDED = cases(
    bodied(by_django=True),
    by_day=[
        ("put", "/api/llm/settings"),
        ("post", "/api/llm/datasets/{dataset_id}/import"),
        ("post", "/api/otlp/v1/traces"),
    ],
)


@dataclass(frozen=True)
class Called:
    """A call's effects: its status, its answer, and every field of every row that it left, each by a path."""

    status: int
    answer: dict[str, Any]
    rows: dict[str, Any]

    @property
    def code(self) -> str:
        return str(self.answer["answer.error.code"])

    @property
    def message(self) -> str:
        return str(self.answer.get("answer.error.message", self.answer.get("answer.message")))

    @property
    def everything(self) -> dict[str, Any]:
        return {"status": self.status, **self.answer, **self.rows}


@dataclass(frozen=True)
class Caller:
    populated: Populated
    # Every table as the module found it, and how many rows of each had been written when the test began.
    kept: Tables
    writes: dict[str, int]

    def rows(self) -> dict[str, Any]:
        """Leaves out times. What the test has not written is as the module found it."""
        written = [table for table, count in _writes().items() if count != self.writes.get(table)]
        tables = {**self.kept, **_read(written)}
        return {name: values for table in tables.values() for name, values in table.items()}

    def body_of(self, operation: Operation) -> bytes:
        method, path = operation
        described = document()["paths"][path][method]
        if media_type_of(operation) == LINES:
            return b'{"messages": [{"role": "user", "content": "Hi"}]}'
        schema = described["requestBody"]["content"][JSON]["schema"]
        telling = TELLING.get(described["operationId"], {})
        return json.dumps({**example(schema, self.populated.known), **telling}).encode()

    def call(
        self, operation: Operation, body: bytes, *, chunked: bool = False, coding: str = "", rows: bool = True
    ) -> Called:
        """Sends a body as an ASGI server does, and undoes the call's changes. Reading all rows takes longer than most
        calls, so `rows` says whether to."""
        method, path = operation
        headers = {**self.populated.headers, "host": "localhost", "content-type": media_type_of(operation)}
        headers |= {"transfer-encoding": "chunked"} if chunked else {"content-length": str(len(body))}
        headers |= {"content-encoding": coding} if coding else {}
        with transaction.atomic():
            url = path.format(**self.populated.known)
            status, answer = async_to_sync(answered)(method.upper(), url, headers, body)
            left = self.rows() if rows else {}
            transaction.set_rollback(True)
        return Called(status, dict(_leaves(json.loads(answer or b"{}"), "answer")), left)

    def differences(
        self, operation: Operation, body: bytes, *same: bytes, called: Called | None = None
    ) -> dict[str, Any]:
        """Returns what each body of `same` with a length, and each of all in chunks, did otherwise than `body` with a
        length.

        What differs from call to call (ids, secrets, the present minute) is found by a call before, which may be
        `called` already, and one after.
        """
        first = (called or self.call(operation, body)).everything
        others = [self.call(operation, other).everything for other in same]
        others += [self.call(operation, other, chunked=True).everything for other in (body, *same)]
        last = self.call(operation, body).everything
        steady = {name for name in first.keys() | last.keys() if first.get(name) == last.get(name)}
        return {
            name: (first.get(name), other.get(name))
            for other in others
            for name in steady | (other.keys() - first.keys() - last.keys())
            if first.get(name) != other.get(name)
        }


@pytest.fixture(scope="module")
def kept(rows: Populated, django_db_blocker: DjangoDbBlocker) -> Tables:
    with django_db_blocker.unblock():
        return _read(_statements())


@pytest.fixture
def caller(populated: Populated, kept: Tables, offline: None, one_connection: None, settings: Any) -> Caller:
    settings.ALLOW_PRIVATE_UPSTREAMS = True
    writes = _writes()
    row = ProviderIntegration(
        project_id=populated.known["project_id"], name="openai", provider="openai", base_url="http://127.0.0.1:9/v1"
    )
    store_secret(row, "sk-0123456789abcdef")
    row.save()
    return Caller(populated, kept, writes)


async def answered(method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
    pieces = [body[start : start + MEGABYTE] for start in range(0, len(body), MEGABYTE)] or [b""]
    messages = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    messages[-1]["more_body"] = False
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        if not messages:
            await asyncio.Event().wait()  # The client waits for its answer.
        return messages.pop(0)

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": path,
        "query_string": b"",
        "client": ("127.0.0.1", 1),
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
    }
    await application(scope, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for name, item in value.items():
            if name != "latency_ms":
                yield from _leaves(item, f"{path}.{name}")
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from _leaves(item, f"{path}.{index}")
    else:
        yield path, _timeless(value)


def _read(tables: Iterable[str]) -> Tables:
    found: Tables = {}
    with connection.cursor() as cursor:
        for table in tables:
            label, fields, (statement, parameters) = _statements()[table]
            cursor.execute(statement, parameters)
            rows = cursor.fetchall()
            found[table] = {label: len(rows)}
            for field, values in zip(fields, zip(*rows, strict=True), strict=False):
                told = values if isinstance(field, models.JSONField) else map(_timeless, values)
                found[table][f"{label}.{field.attname}"] = Counter(map(repr, told))
    return found


def _writes() -> dict[str, int]:
    with connection.cursor() as cursor:
        cursor.execute(_WRITES)
        return {table: count for table, count in cursor.fetchall() if count and table in _statements()}


@cache
def _statements() -> dict[str, tuple[str, list[models.Field[Any, Any]], tuple[str, Any]]]:
    """Caches each table's label, its columns but times, and their statement: Django would write and convert each anew,
    which takes longer than reading."""
    found = {}
    for model in (model for model in apps.get_models() if model._meta.managed):
        fields = [field for field in model._meta.fields if not isinstance(field, models.DateTimeField)]
        read = model._base_manager.order_by().values_list(*(field.attname for field in fields))
        found[model._meta.db_table] = (model._meta.label, fields, read.query.sql_with_params())
    return found


def _timeless(value: Any) -> Any:
    """Removes times, those of signed tokens too: of several calls one may fall into another second."""
    return _TIME.sub("a time", value) if isinstance(value, str) else value


def test_bodies__that_are_told_apart__all_do_something(caller: Caller) -> None:
    """The comparisons below compare effects, and not refusals."""
    by_id = {
        document()["paths"][path][method]["operationId"]: (method, path) for method, path in bodied(by_django=True)
    }
    answers = {name: caller.call(by_id[name], caller.body_of(by_id[name]), rows=False) for name in TELLING}

    assert {name: called.answer for name, called in answers.items() if called.status >= 300} == {}


@pytest.mark.parametrize("operation", bodied(by_django=True), ids=" ".join)
def test_body__in_chunks_and_of_any_size__does_what_one_with_a_length_does(
    caller: Caller, operation: Operation
) -> None:
    body = caller.body_of(operation)
    padded = [body + _BLANK_LINE * (3 * MEGABYTE // len(_BLANK_LINE))] if operation in PADDED else []

    assert caller.differences(operation, body, *padded) == {}


@pytest.mark.parametrize("operation", bodied(by_django=True), ids=" ".join)
def test_body__empty__refused_where_an_object_is_wanted_else_the_same_as_none(
    caller: Caller, operation: Operation
) -> None:
    method, path = operation
    before = caller.rows()
    empty = caller.call(operation, b"")

    assert caller.differences(operation, b"", called=empty) == {}
    if path.startswith("/api/otlp/"):
        return  # Its errors have an envelope of their own.
    if document()["paths"][path][method]["requestBody"]["required"]:
        assert (empty.status, empty.code) == (400, "invalid_json")
        assert empty.rows == before
    else:
        assert method == "post"
        assert empty.status == caller.call(operation, b"{}", rows=False).status


@pytest.mark.parametrize("operation", bodied(by_django=True), ids=" ".join)
def test_body__compressed__refused_by_name_or_read(caller: Caller, operation: Operation) -> None:
    body, before = caller.body_of(operation), caller.rows()
    compressed = gzip.compress(body)
    for chunked in (False, True):
        answer = caller.call(operation, compressed, chunked=chunked, coding="gzip")
        if operation[1].startswith("/api/otlp/"):
            assert answer.status == caller.call(operation, body, rows=False).status
        else:
            assert (answer.status, answer.code) == (415, "unsupported_media_type")
            assert "gzip" in answer.message
            assert answer.rows == before


@pytest.mark.parametrize("operation", bodied(by_django=True), ids=" ".join)
def test_body__above_the_limit__refused_with_the_limit(caller: Caller, operation: Operation, settings: Any) -> None:
    limit = 64 << 10
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = settings.OTLP_BODY_BYTES = settings.DATASET_FILE_BYTES = limit
    body = caller.body_of(operation).ljust(limit)

    assert caller.call(operation, body, rows=False).status != 413
    for chunked in (False, True):
        answer = caller.call(operation, body + b" ", chunked=chunked, rows=False)
        assert answer.status == 413
        assert str(limit) in answer.message
        assert operation[1].startswith("/api/otlp/") or answer.code == "body_too_large"


@pytest.mark.parametrize("chunked", [False, True])
def test_body__at_and_above_the_documented_limit__taken_and_refused(caller: Caller, chunked: bool) -> None:
    operation = ("put", "/api/llm/settings")
    body = caller.body_of(operation).ljust(8 * MEGABYTE)

    assert caller.call(operation, body, chunked=chunked, rows=False).status == 200
    for more in (1, MEGABYTE, 100 * MEGABYTE):
        answer = caller.call(operation, body + b" " * more, chunked=chunked, rows=False)
        assert (answer.status, answer.code) == (413, "body_too_large")
        assert str(8 * MEGABYTE) in answer.message


def test_body__with_a_long_text_in_it__reaches_validation(caller: Caller) -> None:
    scores = [{"request_id": "r", "score_name": "s", "score_value": 1, "reason": "x" * 3000, "no": 1}] * 1000
    body = json.dumps({"project_id": caller.populated.known["project_id"], "scores": scores}).encode()

    answer = caller.call(("post", "/api/llm/scores/batch"), body)

    assert (answer.status, answer.code) == (400, "invalid_value")
    assert "scores.0.no" in answer.message
