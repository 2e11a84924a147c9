from __future__ import annotations

import logging
import re

from analytics.clickhouse.ledger import is_behind
from analytics.errors import (
    AnalyticsLimitError,
    AnalyticsMigratingError,
    AnalyticsQueryError,
    AnalyticsUnavailableError,
)
from core.errors import ApplicationError

logger = logging.getLogger("analytics.clickhouse")

_MEMORY = {241: "MEMORY_LIMIT_EXCEEDED", 307: "TOO_MANY_BYTES"}
_TIME = {159: "TIMEOUT_EXCEEDED", 160: "TOO_SLOW"}
# A stopping engine cancels queries, and an address from before an engine's restart fails authentication. Some codes are
# those of several servers, of which one is away or has not caught up.
_TRANSIENT = {
    202: "TOO_MANY_SIMULTANEOUS_QUERIES",
    209: "SOCKET_TIMEOUT",
    210: "NETWORK_ERROR",
    225: "NO_ZOOKEEPER",
    236: "ABORTED",
    242: "TABLE_IS_READ_ONLY",
    243: "NOT_ENOUGH_SPACE",
    252: "TOO_MANY_PARTS",
    279: "ALL_CONNECTION_TRIES_FAILED",
    285: "TOO_FEW_LIVE_REPLICAS",
    286: "UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE",
    289: "REPLICA_IS_NOT_IN_QUORUM",
    319: "UNKNOWN_STATUS_OF_INSERT",
    341: "UNFINISHED",
    369: "ALL_REPLICAS_ARE_STALE",
    394: "QUERY_WAS_CANCELLED",
    425: "SYSTEM_ERROR",
    439: "CANNOT_SCHEDULE_TASK",
    516: "AUTHENTICATION_FAILED",
    999: "KEEPER_EXCEPTION",
}


# What a statement meets while tables, columns and functions of this version are still missing.
_SCHEMA = {
    8: "THERE_IS_NO_COLUMN",
    10: "NOT_FOUND_COLUMN_IN_BLOCK",
    16: "NO_SUCH_COLUMN_IN_TABLE",
    20: "NUMBER_OF_COLUMNS_DOESNT_MATCH",
    43: "ILLEGAL_TYPE_OF_ARGUMENT",
    46: "UNKNOWN_FUNCTION",
    47: "UNKNOWN_IDENTIFIER",
    60: "UNKNOWN_TABLE",
    81: "UNKNOWN_DATABASE",
    386: "NO_COMMON_TYPE",
}
# A migration takes these tables away, and so does a move to other servers for good.
_UNKNOWN_TABLE = 60
_TAKEN_AWAY = re.compile(r"\b(?:ingest|ingest_figures|anonymised)\b")


def translate(server_code: int, reason: str, *, name: str) -> ApplicationError:
    """Translates a code of ClickHouse's `src/Common/ErrorCodes.cpp`; `name` is the query's."""
    if server_code in _MEMORY:
        return AnalyticsLimitError("The query needs more memory than is allowed. Narrow its range.")
    if server_code in _TIME:
        return AnalyticsLimitError("The query takes longer than is allowed. Narrow its range.")
    if server_code in _TRANSIENT:
        logger.warning("query.unavailable query=%s code=%s", name, server_code)
        return AnalyticsUnavailableError("The analytics store cannot answer the query now.")
    taken_away = server_code == _UNKNOWN_TABLE and _TAKEN_AWAY.search(reason)
    if server_code in _SCHEMA and (taken_away or is_behind()):
        logger.warning("query.too_early query=%s code=%s", name, server_code)
        return AnalyticsMigratingError(server_code=server_code, reason=reason)
    # The reason may quote values of rows, so it is not logged.
    logger.error("query.refused query=%s code=%s", name, server_code)
    message = f"The analytics store refused {name} with code {server_code}."
    return AnalyticsQueryError(message, server_code=server_code, reason=reason)
