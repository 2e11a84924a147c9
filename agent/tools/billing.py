from __future__ import annotations

from decimal import Decimal
from functools import partial
from typing import Annotated, Any

from msgspec import Meta

from agent.tools.base import NoArguments, Toolbox, ToolContext
from agent.tools.fields import ID_CHARACTERS, OneSession
from agent.tools.pages import PageArguments, PagedRangeArguments, RangeArguments, listed, listed_rows, page_of
from agent.tools.ranges import date_range, listed_in_range
from analytics.presenters import metrics
from analytics.presenters.spend import cost_by
from analytics.queries.dimensions import Dimension
from analytics.queries.users import get_user
from core.errors import NotFoundError, ServiceUnavailableError
from core.teams.services import TEAMS
from core.wire.shown import shown
from gateway.reports.limit_usage import recent_forecast, usage_of
from gateway.selectors import project_settings
from gateway.teams.serializers import WarnedTeamSerializer

SCOPE = "billing:read"

_PLACES = 10
_USER_FIELDS = (
    "user_id", "request_count", "session_count", "prompt_tokens", "completion_tokens", "cache_read_tokens",
    "cache_write_tokens", "total_tokens", "total_cost_usd", "unpriced_request_count", "models_used", "first_seen",
    "last_seen",
)  # fmt: skip


TOOLS = Toolbox(SCOPE)


class UserSpend(RangeArguments, kw_only=True, frozen=True):
    user_id: Annotated[str, Meta(min_length=1, max_length=ID_CHARACTERS, description="Id of an end user, exactly.")]


@TOOLS.tool("Cost per day")
def list_daily_costs(context: ToolContext, arguments: PagedRangeArguments) -> dict[str, Any]:
    """Cost, requests and tokens per UTC day, the latest first, and total_cost_usd of the whole range. By default of the
    last 30 days; period=this_week for the week so far."""
    dates, page = date_range(context, arguments), page_of(arguments)
    found = listed(metrics.daily_costs(context.project_id, dates, page), page)
    # The sum covers the whole range and not the page, so that a model need not add up pages.
    total = metrics.model_costs(context.project_id, dates, page).more["total_cost_usd"]
    return {**found, "total_cost_usd": total}


@TOOLS.tool("Cost per model")
def list_model_costs(context: ToolContext, arguments: PagedRangeArguments) -> dict[str, Any]:
    """Cost per model, the most expensive first, with its percentage of all spend, requests and tokens, and
    total_cost_usd of all models. By default of the last 30 days."""
    return listed_in_range(context, arguments, metrics.model_costs)


@TOOLS.tool("Teams")
def list_teams(context: ToolContext, arguments: PageArguments) -> dict[str, Any]:
    """The project's teams by name, whose keys share limits: budgets, requests and tokens per minute, requests at the
    same time, how many keys and members each has, and warnings where the project's own limits are lower. A limit that
    is null is not set."""
    return listed_rows(TEAMS.rows(context.project_id), WarnedTeamSerializer, arguments)


@TOOLS.tool("Cost per team")
def list_team_costs(context: ToolContext, arguments: PagedRangeArguments) -> dict[str, Any]:
    """What each team's keys cost while they belonged to it, the most expensive first, beside the range before; requests
    of keys without a team have an empty name. By default of the last 30 days; period=this_month for what counts against
    the teams' budgets, which list_teams has."""
    return listed_in_range(context, arguments, partial(cost_by, group_by=Dimension.TEAM))


@TOOLS.tool("Prompt caches")
def list_prompt_caches(context: ToolContext, arguments: PagedRangeArguments) -> dict[str, Any]:
    """What the vendors' prompt caches saved and missed per model and version of a prompt, those that saved most first:
    input tokens, tokens read and written, saved_usd, missed_tokens and missed_usd. By default of the last 30 days."""
    return listed_in_range(context, arguments, metrics.prompt_caches)


@TOOLS.tool("Budgets")
def get_budget_status(context: ToolContext, arguments: NoArguments) -> dict[str, Any]:
    """Budgets and rate limits as they stand now: spent, reserved and remaining of the month's budget, requests and
    tokens used of this minute's limits, the budget of a session, and two forecasts of the spend at the end of the
    month, each saying what it assumes. A budget or limit that is null is not set."""
    found = usage_of(context.project_id, "", context.now)
    settings = project_settings(context.project_id)
    spent = found["month"]["spent_usd"]
    return {
        **found,
        "budget_alert_enabled": settings.budget_alert_enabled,
        "session_budget_usd": None if settings.session_budget_usd is None else float(settings.session_budget_usd),
        "forecasts": [
            {
                "method": "linear on the days of this month so far; the first day counts as a whole one",
                "forecast_usd": found["month"]["forecast_usd"],
            },
            {
                "method": "spent so far, and for the rest of the month the average of the last 7 days",
                "forecast_usd": _recent_forecast(context, Decimal(str(spent))),
            },
        ],
    }


def _recent_forecast(context: ToolContext, spent: Decimal) -> float | None:
    """Returns None while the request log does not answer: the other figures may be known."""
    try:
        return round(float(recent_forecast(context.project_id, spent, context.now)), _PLACES)
    except ServiceUnavailableError:
        return None


@TOOLS.tool("Spend of a session")
def get_session_spend(context: ToolContext, arguments: OneSession) -> dict[str, Any]:
    """What one session has spent, has reserved, and has left of the budget of a session."""
    found: dict[str, Any] = usage_of(context.project_id, arguments.session_id, context.now)["session"]
    return found


@TOOLS.tool("Spend of a user")
def get_user_spend(context: ToolContext, arguments: UserSpend) -> dict[str, Any]:
    """What one end user cost in a range of time, by default the last 30 days: cost, requests, sessions, tokens and
    models used. list_user_metrics has the most expensive users."""
    dates = date_range(context, arguments)
    row = get_user(dates.of(context.project_id), arguments.user_id)
    if row is None:
        raise NotFoundError("This user made no request in the range.", code="user_not_found")
    figures = shown(row)
    return {
        "start_date": dates.start,
        "end_date": dates.end,
        **{name: figures[name] for name in _USER_FIELDS},
    }
