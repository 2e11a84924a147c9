from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from django.http import Http404
from django.http.response import HttpResponseBase

from analytics.deletion.services import delete_user
from analytics.figures.query import FigureQuery, series_of, values_of
from analytics.models import END_USER_CHARACTERS, DeletionState, Feedback
from analytics.parameters.ranges import TimeRange
from analytics.presenters.sessions import session_page
from analytics.presenters.users import end_user
from analytics.queries import visible
from analytics.queries.lookup import find_user
from analytics.queries.session_cursors import WholeSessionFilter
from analytics.queries.session_filters import SessionFilter
from analytics.queries.users import get_user
from analytics.scores.selectors import feedback_of_sessions, latest_user_deletion
from console.limits.tiles import use_tiles
from console.sessions.list import session_columns
from core.errors import NotFoundError
from core.roles import Right
from core.ui.edit import EditPage
from core.ui.formats import moment, money, number, share
from core.ui.pages import Visit
from core.ui.panels import Panel
from core.ui.plots import Plot, Series, Unit
from core.ui.tables import Column, Table
from core.ui.tiles import Tile
from gateway.end_users.services import END_USER_LIMITS
from gateway.reports.caller_usage import user_usage

_ROWS = 10
_ERASURE_SECONDS = 5
_LOG, _SESSIONS = "analytics_requests_changelist", "sessions"
_ANY_SCORE = (1, 2, 3, 4, 5)


class UserPage(EditPage[str, Any]):
    name = "user"
    # Names of users are the client's own and may hold slashes, so nothing follows them.
    route = "analytics/users/<uuid:project_id>/<slashed:user_id>"
    parent = "usage"
    title = "End user"
    right = Right.ADMINISTER
    saves = ()

    def record(self, visit: Visit, **route: Any) -> str:
        user_id = str(route["user_id"])
        if len(user_id) > END_USER_CHARACTERS or "\x00" in user_id:
            raise Http404("There is no such user.")
        return user_id

    def shown(self, visit: Visit, record: str, form: Any) -> Mapping[str, Any]:
        limits = END_USER_LIMITS.rows(visit.project.pk).filter(user_id=record).first()
        return {
            "subtitle": record[:200],
            "usage_address": visit.link_if_there("usage", group_by="user"),
            "log_address": visit.link_if_there(_LOG, user_id=record),
            "sessions_address": visit.link_if_there(_SESSIONS, user_id=record),
            "limits_address": visit.link_if_there("end_users", limit=limits.pk if limits else ""),
        }

    def existence(self, visit: Visit, **route: Any) -> Callable[[], bool] | None:
        project_id, user_id = visit.project.pk, self.record(visit, **route)
        if latest_user_deletion(project_id, user_id) or END_USER_LIMITS.rows(project_id).filter(user_id=user_id):
            return None
        return partial(visible.looked_up(project_id).run, lambda: bool(find_user(project_id, user_id)))

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        user_id = self.record(visit, **route)
        return [
            Panel(
                "figures",
                "Figures",
                "panels/tiles.html",
                lambda: {"tiles": _figures(visit, user_id)},
                is_wide=True,
                is_of_log=True,
            ),
            Panel("cost", "Cost over time", "panels/plot.html", lambda: {"plot": _cost(visit, user_id)}, is_wide=True),
            Panel.of_table("sessions", "Sessions", lambda: _sessions(visit, user_id), is_wide=True),
            Panel.of_table("errors", "Errors", lambda: _errors(visit, user_id)),
            Panel.of_table("feedback", "Feedback", lambda: _feedback(visit, user_id)),
            Panel(
                "limits",
                "Limits",
                "panels/tiles.html",
                lambda: {"tiles": _limits(visit, user_id)},
            ),
            Panel(
                "erasure",
                "Erase this user",
                "users/erasure.html",
                lambda: _erasure(visit, user_id),
                refresh_seconds=_ERASURE_SECONDS if _is_being_erased(visit, user_id) else 0,
            ),
        ]

    def do_erase(self, visit: Visit, record: str) -> HttpResponseBase:
        delete_user(visit.project.pk, record, actor=visit.actor)
        return visit.done("The user is being erased.", self.address(visit, record) + "#panel-erasure")


def _is_being_erased(visit: Visit, user_id: str) -> bool:
    latest = latest_user_deletion(visit.project.pk, user_id)
    return latest is not None and latest.state == DeletionState.PENDING


def _range(visit: Visit) -> TimeRange:
    return TimeRange(visit.period.start, visit.period.end)


def _figures(visit: Visit, user_id: str) -> Sequence[Tile]:
    found = get_user(_range(visit).of(visit.project.pk), user_id)
    if found is None:
        return [Tile("Requests", "0", "in this range")]
    failed = share(found.error_rate)
    errors = visit.link_if_there(_LOG, user_id=user_id, outcome=["error", "interrupted"])
    return [
        Tile("Cost", money(found.total_cost_usd), f"{number(found.total_tokens)} tokens"),
        Tile("Requests", number(found.request_count), href=visit.link_if_there(_LOG, user_id=user_id)),
        Tile("Failed", failed, f"{number(found.error_count)} requests", errors, "bad" if found.error_count else "good"),
        Tile("Sessions", number(found.session_count), href=visit.link_if_there(_SESSIONS, user_id=user_id)),
        Tile("First seen", moment(found.first_seen), "in this range"),
        Tile("Last seen", moment(found.last_seen), "in this range"),
    ]


def _of_user(figure: str, user_id: str, group_by: str = "") -> FigureQuery:
    return FigureQuery(figure, group_by, {"user_id": user_id})


def _cost(visit: Visit, user_id: str) -> Plot:
    found = series_of(visit.project.pk, _of_user("total_cost_usd", user_id, "model"), _range(visit))
    return Plot(
        title=f"Cost by {found.interval} and model",
        times=found.starts,
        series=[Series(one.key, one.values) for one in found.series],
        unit=Unit.MONEY,
        kind="stacked",
        brush=visit.link_if_there(_LOG, user_id=user_id),
    )


def _filter(visit: Visit, user_id: str, **more: Any) -> WholeSessionFilter:
    return WholeSessionFilter(SessionFilter(user_id=user_id, start=visit.period.start, end=visit.period.end), **more)


def _sessions(visit: Visit, user_id: str) -> Table:
    page = session_page(visit.project.pk, _filter(visit, user_id), limit=_ROWS)
    return Table(
        caption="The latest sessions of the range",
        # The whole list sorts; these ten rows do not.
        columns=[replace(column, sort="") for column in session_columns(visit) if column.name != "user"],
        rows=page.results,
        empty=visit.nothing("No request of this user in this range named a session."),
        next_url=visit.link_if_there(_SESSIONS, user_id=user_id) if page.next_cursor else "",
        key=lambda row: visit.link("session", visit.project.pk, row["session_id"]),
    )


def _errors(visit: Visit, user_id: str) -> Table:
    query = _of_user("error_count", user_id, "error_code")
    return Table(
        caption="Error codes of the user's requests in this range",
        columns=[
            Column("code", "Error code", lambda row: row.key),
            Column("count", "Requests", lambda row: number(row.values[0]), is_numeric=True),
        ],
        rows=values_of(visit.project.pk, query, ["error_count"], _range(visit), limit=_ROWS),
        empty=visit.nothing("No request of this user failed in this range."),
        key=lambda row: visit.link(_LOG, user_id=user_id, error_code=row.key),
    )


def _feedback(visit: Visit, user_id: str) -> Table:
    rated = session_page(visit.project.pk, _filter(visit, user_id, feedback=_ANY_SCORE), limit=_ROWS)
    given = feedback_of_sessions(visit.project.pk, [row["session_id"] for row in rated.results])

    def said(row: Feedback) -> str:
        return row.text if visit.sees_content else ""

    return Table(
        caption="The latest feedback on sessions of the range",
        columns=[
            Column("session", "Session", lambda row: row.session_id),
            Column("score", "Score", lambda row: f"{row.score} of 5" if row.score else "", is_numeric=True),
            Column("text", "Text", said),
            Column("when", "When", lambda row: moment(row.created_at)),
        ],
        rows=list(given[:_ROWS]),
        empty=visit.nothing("No session of this user in this range was given a score."),
        key=lambda row: visit.link("session", visit.project.pk, row.session_id) + "#panel-feedback",
    )


def _limits(visit: Visit, user_id: str) -> Sequence[Tile]:
    return use_tiles(user_usage(visit.project.pk, user_id))


def _erasure(visit: Visit, user_id: str) -> Mapping[str, Any]:
    try:
        found = end_user(visit.project.pk, user_id)
    except NotFoundError:
        found = None
    return {
        "found": found,
        "erasure": found and found.erasure,
        "may_erase": visit.may(Right.ADMINISTER),
    }
