"""Failures of the analytics store. Nothing of the driver's own errors leaves `analytics.clickhouse.client`.

ApplicationError
├── ServiceUnavailableError
│   ├── AnalyticsUnavailableError   nobody answers, or the server cannot serve right now: try again later
│   └── AnalyticsLimitError         the query needs more memory or time than it may have
└── AnalyticsQueryError             the statement or its rows are wrong: trying again cannot help
"""

from __future__ import annotations

from core.errors import ApplicationError, ServiceUnavailableError


class AnalyticsUnavailableError(ServiceUnavailableError):
    code = "analytics_unavailable"


class AnalyticsLimitError(ServiceUnavailableError):
    code = "analytics_limit"


class AnalyticsQueryError(ApplicationError):
    """`server_code` is ClickHouse's error code, 0 when the rows could not even be encoded; `reason` is for operators.

    `message`, which a client of the API may see, names neither statement nor data.
    """

    code = "analytics_query"

    def __init__(self, message: str, *, server_code: int, reason: str) -> None:
        super().__init__(message)
        self.server_code = server_code
        self.reason = reason
