"""Tools about sessions and the requests in them."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from agent.tools.base import Arguments, Tool, ToolContext
from agent.tools.fields import ID_CHARACTERS, OfOperation, OfUser, SessionId
from agent.tools.llm.scope import SCOPE
from agent.tools.pages import PageArguments, PagedRangeArguments, chosen, listed, page_of
from agent.tools.ranges import range_dates
from analytics.parameters.common import SessionParameters
from analytics.presenters import sessions

# The number of a session's latest feedback entries; `list_session_feedback` has all of them.
_MAX_FEEDBACK = 10


class ListSessions(PagedRangeArguments, kw_only=True, frozen=True):
    user_id: OfUser = ""
    operation: OfOperation = None
    name_pattern: Annotated[
        str, Meta(max_length=ID_CHARACTERS, description="SQL LIKE pattern of the session id, e.g. checkout-%.")
    ] = ""


class OneSession(Arguments, kw_only=True, frozen=True):
    session_id: SessionId


class SessionRequests(PageArguments, kw_only=True, frozen=True):
    session_id: SessionId


def _list_sessions(context: ToolContext, arguments: ListSessions) -> dict[str, Any]:
    values = {**chosen(arguments, ["user_id", "operation", "name_pattern"]), **range_dates(context, arguments)}
    page = page_of(arguments)
    return listed(sessions.sessions(context.project_id, SessionParameters(data=values).to_filter(), page), page)


def _get_session(context: ToolContext, arguments: OneSession) -> dict[str, Any]:
    found = sessions.session(context.project_id, arguments.session_id)
    return {**found, "feedback": found["feedback"][:_MAX_FEEDBACK], "feedback_count": len(found["feedback"])}


def _list_session_requests(context: ToolContext, arguments: SessionRequests) -> dict[str, Any]:
    page = page_of(arguments)
    return listed(sessions.session_requests(context.project_id, arguments.session_id, page), page)


TOOLS: tuple[Tool, ...] = (
    Tool(
        name="list_sessions",
        scope=SCOPE,
        title="Sessions",
        description=(
            "List sessions (conversations of the project's own users with models, and those with this agent), the"
            " latest active first, with number of requests, tokens, cost, errors and feedback of each. To find a"
            " session by what was said in it, use search_requests."
        ),
        arguments=ListSessions,
        run=_list_sessions,
    ),
    Tool(
        name="get_session",
        scope=SCOPE,
        title="Session",
        description=(
            "One session: tokens by kind, cost, errors, average latency, models and providers used, users, duration and"
            " the latest feedback."
        ),
        arguments=OneSession,
        run=_get_session,
    ),
    Tool(
        name="list_session_requests",
        scope=SCOPE,
        title="Requests of a session",
        description=(
            "The requests of one session in the order they were made, with outcome, error, model, tokens, cost, latency"
            " and the beginning of prompt and completion. get_request has the whole texts."
        ),
        arguments=SessionRequests,
        run=_list_session_requests,
    ),
)
