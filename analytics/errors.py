"""Failures of scores and of the analytics store.

The driver's own errors never leave `analytics.clickhouse.client`.
"""

from __future__ import annotations

from core.errors import (
    ApplicationError,
    ConflictError,
    NotFoundError,
    PermissionDeniedError,
    ServiceUnavailableError,
)

TooManyDashboardsError = ConflictError.kind(
    "too_many_dashboards", "There are {} dashboards of yours in the project already: delete one first."
)
TooManyChartsError = ConflictError.kind(
    "too_many_charts", "A dashboard has at most {} charts: remove one first, or begin another dashboard."
)
DashboardNotOwnedError = PermissionDeniedError.kind(
    "dashboard_not_owned", "A shared dashboard is changed by the person who made it and by editors of the project."
)
DashboardNotFoundError = NotFoundError.kind(
    "dashboard_not_found", "There is no such dashboard, or it is not shared with you."
)
ChartNotFoundError = NotFoundError.kind("chart_not_found", "The dashboard has no such chart.")
DashboardExistsError = ConflictError.kind("dashboard_exists", "You have a dashboard called {} already.", field="name")
# A key that is public gives feedback on a session without the session's token, or with one that is not valid.
FeedbackTokenError = PermissionDeniedError.kind("feedback_token_invalid")
# A score's id belongs to another request's score. Its field is the path of the id in the body.
ScoreExistsError = ConflictError.kind("score_exists")

# ClickHouse's error codes for values that are at fault, and 0 for the driver's own refusal to encode them.
_CONTENT_CODES = frozenset({0, 6, 27, 33, 38, 41, 53, 69, 70, 72, 117, 131, 321, 349, 407, 441, 469})
# A store that restarts or was cut off is back within seconds, and an early retry costs it nothing.
_RETRY_SECONDS = 5


class AnalyticsUnavailableError(ServiceUnavailableError):
    code = "analytics_unavailable"

    def __init__(self, message: str) -> None:
        super().__init__(message, headers={"Retry-After": str(_RETRY_SECONDS)})


class AnalyticsSchemaError(AnalyticsUnavailableError):
    pass


AnalyticsLimitError = ServiceUnavailableError.kind("analytics_limit")


class AnalyticsQueryError(ApplicationError):
    """The statement or its rows are wrong. `server_code` is ClickHouse's error code, 0 if encoding the rows failed.

    `reason` is for operators. Clients of the API may see `message`, which names neither statement nor data.
    """

    code = "analytics_query"

    def __init__(self, message: str, *, server_code: int, reason: str) -> None:
        super().__init__(message)
        self.server_code = server_code
        self.reason = reason

    @property
    def blames_rows(self) -> bool:
        """Whether the same rows never fit."""
        return self.server_code in _CONTENT_CODES


class AnalyticsMigratingError(AnalyticsUnavailableError, AnalyticsQueryError):
    """The store refused a statement because migrations of this version are pending. The client should retry.

    The migrator reads the store's code, as of any refused statement.
    """

    code = AnalyticsUnavailableError.code

    def __init__(self, *, server_code: int, reason: str) -> None:
        message = "The analytics store does not have all tables of this version yet; try again."
        ApplicationError.__init__(self, message, headers={"Retry-After": str(_RETRY_SECONDS)})
        self.server_code = server_code
        self.reason = reason


# Another repair of the project is running; the requested deletion or repair is stored and done later.
RepairBusyError = ServiceUnavailableError.kind("repair_busy")
