"""The only module that sends statements to ClickHouse, to a server and to the embedded engine alike.

Values reach a query only as server-side parameters (`{name:Type}`); nothing is formatted into SQL.
"""

from __future__ import annotations

import logging
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any, TypeVar

from clickhouse_driver import Client
from clickhouse_driver import errors as driver_errors
from django.conf import settings

from analytics.clickhouse.address import database, resolve_url
from analytics.clickhouse.connections import connections
from analytics.clickhouse.liveness import liveness
from analytics.clickhouse.server_errors import translate
from analytics.clickhouse.topology.mode import mode
from analytics.clickhouse.topology.routing import Step, steps
from analytics.errors import AnalyticsQueryError, AnalyticsUnavailableError

Row = TypeVar("Row")

logger = logging.getLogger("analytics.clickhouse")

_READ_MARGIN_SECONDS = 10
_STATEMENT_SECONDS = 600
_UNLIMITED_SECONDS = 86400.0
_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)?\Z")
_AUTHENTICATION_FAILED = 516
# The driver's codecs raise these errors for a value that does not fit its column.
_ENCODING_ERRORS = (TypeError, ValueError, AttributeError, KeyError, ArithmeticError, struct.error)
_CONNECT_ERRORS = (driver_errors.NetworkError, driver_errors.SocketTimeoutError)
_CONNECTION_ERRORS = (
    *_CONNECT_ERRORS,
    driver_errors.UnexpectedPacketFromServerError,
    driver_errors.UnknownPacketFromServerError,
    EOFError,
    OSError,
)


def query(
    sql: str,
    params: Mapping[str, Any],
    *,
    row: type[Row],
    name: str,
    database_settings: Mapping[str, Any] | None = None,
    hasty: bool = True,
    fresh: Sequence[str] = (),
) -> list[Row]:
    """Runs a SELECT. `row` is a dataclass or struct with a field for each column, or the type of the only column.

    `name` marks the query in the server's query log. `fresh` names tables of which the answer must include every row
    that any server has stored. A `hasty` query fails once the store has been silent for CLICKHOUSE_SILENT_SECONDS;
    others wait for their whole time limit.

    Raises AnalyticsUnavailableError, AnalyticsLimitError or AnalyticsQueryError, and TypeError when columns and fields
    differ.
    """
    [step] = _steps(sql, fresh)
    query_settings = {
        **_limits(),
        "log_comment": name,
        "session_timezone": "UTC",
        "readonly": 2,
        **step.settings,
        **(database_settings or {}),
    }
    bound = bind(params)

    def run(client: Client) -> Any:
        return client.execute(step.sql, bound, with_column_types=True, settings=query_settings)

    rows, columns = _run(run, step, name=name, seconds=_seconds(query_settings), retry=True, hasty=hasty)
    return _as_objects(rows, [column for column, _ in columns], row, name)


def execute(
    sql: str,
    params: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    *,
    fresh: Sequence[str] = (),
) -> list[tuple[Any, ...]]:
    """Runs any statement, for up to 10 minutes unless `settings` say otherwise. `fresh` is as in `query`.

    It is sent again only if no connection could be made, so that it never runs twice.
    """
    bound = bind(params or {})
    results = [_execute(step, bound, settings or {}) for step in _steps(sql, fresh)]
    return results[0]


def _execute(step: Step, bound: Mapping[str, Any], settings: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    chosen = {"max_execution_time": _STATEMENT_SECONDS, **step.settings, **settings}

    def run(client: Client) -> Any:
        return client.execute(step.sql, bound, settings=chosen)

    result = _run(run, step, name="statement", seconds=_seconds(chosen), retry=False)
    return result if isinstance(result, list) else []


def insert(table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], *, token: str) -> None:
    if rows:
        insert_columns(table, dict(zip(columns, zip(*rows, strict=True), strict=True)), token=token)


def exactly_once(token: str) -> dict[str, Any]:
    """Returns the settings of an INSERT whose rows count once, in the table and in its materialized views."""
    return {
        "async_insert": 0,
        "insert_deduplicate": 1,
        "deduplicate_blocks_in_dependent_materialized_views": 1,
        "insert_deduplication_token": token,
        # A batch may hold rows of any days. A batch refused for having many would be sent again without end.
        "max_partitions_per_insert_block": 0,
    }


def insert_columns(table: str, columns: Mapping[str, Sequence[Any]], *, token: str) -> None:
    """Inserts the columns as one block and returns once it is stored. A missing column gets its default.

    `token` is the idempotency key: the same rows with the same token count once, in the table and in its materialized
    views. Raises AnalyticsUnavailableError if the rows should be sent again, AnalyticsQueryError if they never fit.
    """
    for name in (table, *columns):
        if not _NAME.match(name):
            raise ValueError(f"{name!r} is not a plain name")
    [step] = _steps(f"INSERT INTO {table} ({', '.join(columns)}) VALUES")
    insert_settings = {
        **_limits(),
        "log_comment": f"insert.{table}",
        **exactly_once(token),
        **step.settings,
    }

    def run(client: Client) -> Any:
        # The driver may write into a list, and needs one.
        by_column = [list(values) for values in columns.values()]
        return client.execute(step.sql, by_column, columnar=True, settings=insert_settings)

    _run(run, step, name=f"insert.{table}", seconds=_seconds(insert_settings), retry=True)


def close() -> None:
    connections().close()


def _steps(sql: str, fresh: Sequence[str] = ()) -> list[Step]:
    found = mode()
    return steps(sql, found, "" if found.is_single else database(), fresh=fresh)


def _limits() -> dict[str, Any]:
    return {
        "max_memory_usage": settings.CLICKHOUSE_QUERY_BYTES,
        "max_execution_time": settings.CLICKHOUSE_QUERY_SECONDS,
    }


def _seconds(query_settings: Mapping[str, Any]) -> float:
    """The read timeout is longer than the server's own limit, so that the server gives up first."""
    limit = float(query_settings["max_execution_time"])
    return limit + _READ_MARGIN_SECONDS if limit else _UNLIMITED_SECONDS


def _run(
    call: Callable[[Client], Any], step: Step, *, name: str, seconds: float, retry: bool, hasty: bool = False
) -> Any:
    """Retries once on a new connection if the first was lost; without `retry`, only if nothing was sent."""

    def prepared(client: Client) -> Any:
        for statement in step.before:
            client.execute(statement, settings={"max_execution_time": seconds})
        return call(client)

    def ask() -> Any:
        if hasty:
            liveness().require()
        # An engine that was started again listens on another port.
        with connections().lent(resolve_url(step.suffix), seconds) as client:
            if not hasty:
                return prepared(client)
            liveness().require()  # The call may have waited for a connection.
            with liveness().watched(client):
                return prepared(client)

    try:
        return _attempt(ask, name)
    except AnalyticsUnavailableError as error:
        cause = error.__cause__
        # The idle connections were lost together with this one.
        close()
        if not (_never_sent(cause) or (retry and _lost(cause))):
            raise
        logger.info("connection.retried query=%s", name)
    return _attempt(ask, name)


def _never_sent(cause: BaseException | None) -> bool:
    refused = isinstance(cause, driver_errors.ServerException) and cause.code == _AUTHENTICATION_FAILED
    return refused or isinstance(cause, _CONNECT_ERRORS)


def _lost(cause: BaseException | None) -> bool:
    return isinstance(cause, _CONNECTION_ERRORS) and not isinstance(cause, TimeoutError)


def _attempt(call: Callable[[], Any], name: str) -> Any:
    try:
        return call()
    except driver_errors.ServerException as error:
        raise translate(error.code, error.message, name=name) from error
    except _CONNECTION_ERRORS as error:
        raise AnalyticsUnavailableError("The analytics store does not answer.") from error
    except (driver_errors.Error, *_ENCODING_ERRORS) as error:
        message = f"The analytics store cannot take the values of {name}."
        raise AnalyticsQueryError(message, server_code=0, reason=f"{type(error).__name__}: {error}") from error


def _as_objects(rows: Sequence[tuple[Any, ...]], columns: list[str], row: type[Row], name: str) -> list[Row]:
    if is_dataclass(row):
        names = [field.name for field in fields(row)]
    elif struct_fields := getattr(row, "__struct_fields__", None):
        names = list(struct_fields)
    else:
        return [value for (value,) in rows]
    if sorted(names) != sorted(columns):
        raise TypeError(f"{name}: columns {sorted(columns)} are not the fields {sorted(names)} of {row.__name__}")
    if not is_dataclass(row):
        return [row(**dict(zip(columns, values, strict=True))) for values in rows]
    # A dataclass takes its values by place in a third of the time that it takes them by name in.
    pick = itemgetter(*(columns.index(field) for field in names))
    return [row(*(values if names == columns else pick(values))) for values in rows]


def bind(params: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values in forms that the driver renders faithfully. Raises TypeError for None and ValueError for a
    time without a zone.

    The driver would cut times to seconds and send None as the text 'NULL'. A time becomes its UTC text, so its
    placeholder names the zone: `{start:DateTime64(6, 'UTC')}`.
    """
    return {name: _bound(name, value) for name, value in params.items()}


def _bound(name: str, value: Any) -> Any:
    if value is None:
        raise TypeError(f"query parameter {name} is None; leave the condition out instead")
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, datetime):
        return _utc_text(name, value)
    if isinstance(value, (list, tuple)):
        return [_bound(name, item) for item in value]
    return value


def _utc_text(name: str, value: datetime) -> str:
    if value.tzinfo is None:
        raise ValueError(f"query parameter {name} is a time without a zone")
    precision = "%Y-%m-%d %H:%M:%S.%f" if value.microsecond else "%Y-%m-%d %H:%M:%S"
    return value.astimezone(UTC).strftime(precision)
