"""Failures of scores and of the analytics store.

Nothing of the driver's own errors leaves `analytics.clickhouse.client`.

ApplicationError
├── ValidationError
│   └── RepeatedScoreError          a batch names one score twice
├── PermissionDeniedError
│   ├── FeedbackTokenError          a browser's key comes without the token of the session, or with another
│   └── DashboardNotOwnedError      a shared dashboard is another's, and the caller is no editor
├── NotFoundError
│   ├── TraceDestinationNotFoundError  the project has no such destination of spans
│   ├── DashboardNotFoundError      the project has no such dashboard, or it is another's own
│   └── ChartNotFoundError          the dashboard has no such chart
├── ConflictError
│   ├── DashboardExistsError        the owner has a dashboard of this name
│   ├── ScoreExistsError            a score's own id is that of another request's score
│   ├── TooManyTraceDestinationsError  the project exports spans to as many destinations as it may
│   ├── TooManyDashboardsError      the owner has as many dashboards as one may have
│   ├── TooManyChartsError          the dashboard has as many charts as it may
│   └── TraceDestinationExistsError the project has a destination of this name
├── ServiceUnavailableError
│   ├── AnalyticsUnavailableError   nobody answers, or the server cannot serve right now: try again later
│   │   ├── AnalyticsSchemaError    its tables are of a version that this one cannot upgrade
│   │   └── AnalyticsMigratingError its tables are still being brought to this version
│   ├── AnalyticsLimitError         the query needs more memory or time than it may have
│   └── RepairBusyError             another deletion or repair of the project is going on
└── AnalyticsQueryError             the statement or its rows are wrong: trying again cannot help
"""

from __future__ import annotations

from core.errors import (
    ApplicationError,
    ConflictError,
    NotFoundError,
    PermissionDeniedError,
    ServiceUnavailableError,
    ValidationError,
)


class RepeatedScoreError(ValidationError):
    """A batch names one score twice; `field` is the path of the second one, as `scores.3.score_id`."""

    def __init__(self, field: str) -> None:
        problem = "Is in this batch twice."
        super().__init__(f"{field}: {problem}", details={field: [problem]})


class TooManyTraceDestinationsError(ConflictError):
    code = "too_many_trace_destinations"

    def __init__(self, limit: int) -> None:
        super().__init__(f"A project has at most {limit} trace destinations: remove one first.")


class TraceDestinationNotFoundError(NotFoundError):
    code = "trace_destination_not_found"

    def __init__(self) -> None:
        super().__init__("The project has no such trace destination.")


class TraceDestinationExistsError(ConflictError):
    code = "trace_destination_exists"


class TooManyDashboardsError(ConflictError):
    code = "too_many_dashboards"

    def __init__(self, limit: int) -> None:
        super().__init__(f"There are {limit} dashboards of yours in the project already: delete one first.")


class TooManyChartsError(ConflictError):
    code = "too_many_charts"

    def __init__(self, limit: int) -> None:
        super().__init__(f"A dashboard has at most {limit} charts: remove one first, or begin another dashboard.")


class DashboardNotOwnedError(PermissionDeniedError):
    code = "dashboard_not_owned"

    def __init__(self) -> None:
        super().__init__("A shared dashboard is changed by the person who made it and by editors of the project.")


class DashboardNotFoundError(NotFoundError):
    code = "dashboard_not_found"

    def __init__(self) -> None:
        super().__init__("There is no such dashboard, or it is not shared with you.")


class ChartNotFoundError(NotFoundError):
    code = "chart_not_found"

    def __init__(self) -> None:
        super().__init__("The dashboard has no such chart.")


class DashboardExistsError(ConflictError):
    code = "dashboard_exists"

    def __init__(self, name: str) -> None:
        problem = f"You have a dashboard called {name} already."
        super().__init__(f"name: {problem}", details={"name": [problem]})


class FeedbackTokenError(PermissionDeniedError):
    """A key that is public gives feedback on a session without the session's token, or with one that is not valid."""

    code = "feedback_token_invalid"


class ScoreExistsError(ConflictError):
    """A score's id belongs to another request's score; `field` is the path of the id in the body."""

    code = "score_exists"

    def __init__(self, field: str) -> None:
        problem = "There is a score of this id for another request or name."
        super().__init__(f"{field}: {problem}", details={field: [problem]})


# A store that restarts or was cut off is back within seconds, and an early retry costs it nothing.
_RETRY_SECONDS = 5


class AnalyticsUnavailableError(ServiceUnavailableError):
    code = "analytics_unavailable"

    def __init__(self, message: str) -> None:
        super().__init__(message, headers={"Retry-After": str(_RETRY_SECONDS)})


class AnalyticsSchemaError(AnalyticsUnavailableError):
    """The store's tables are of a version that this one cannot upgrade; the message says how to upgrade the store."""


class AnalyticsLimitError(ServiceUnavailableError):
    code = "analytics_limit"


class AnalyticsQueryError(ApplicationError):
    """The statement or its rows are wrong. `server_code` is ClickHouse's error code, 0 when the rows could not even be
    encoded; `reason` is for operators. `message`, which a client of the API may see, names neither statement nor data.
    """

    code = "analytics_query"

    def __init__(self, message: str, *, server_code: int, reason: str) -> None:
        super().__init__(message)
        self.server_code = server_code
        self.reason = reason


class AnalyticsMigratingError(AnalyticsUnavailableError, AnalyticsQueryError):
    """The store refused a statement for what it will have once the migrations of this version are applied. The client
    is to try again; the migrator reads the store's code, as of any statement that was refused."""

    code = AnalyticsUnavailableError.code

    def __init__(self, *, server_code: int, reason: str) -> None:
        message = "The analytics store does not have all tables of this version yet; try again."
        ApplicationError.__init__(self, message, headers={"Retry-After": str(_RETRY_SECONDS)})
        self.server_code = server_code
        self.reason = reason


class RepairBusyError(ServiceUnavailableError):
    """Another repair of the project is running; the requested deletion or repair is stored and done later."""

    code = "repair_busy"
