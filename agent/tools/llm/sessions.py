from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from agent.tools.base import Toolbox, ToolContext
from agent.tools.fields import ID_CHARACTERS, OfOperation, OfUser, OneSession, SessionId
from agent.tools.llm.scope import SCOPE
from agent.tools.pages import PageArguments, PagedRangeArguments, chosen, listed, page_of
from agent.tools.ranges import range_dates
from analytics.parameters.common import SessionParameters
from analytics.presenters import sessions
from analytics.queries.session_cursors import WholeSessionFilter
from analytics.queries.session_sorting import LATEST, VALUES
from core.wire.pagination import Listing, Page

# The number of a session's latest feedback entries; `list_session_feedback` has all of them.
_MAX_FEEDBACK = 10


TOOLS = Toolbox(SCOPE)


class ListSessions(PagedRangeArguments, kw_only=True, frozen=True):
    user_id: OfUser = ""
    operation: OfOperation = None
    name_pattern: Annotated[
        str, Meta(max_length=ID_CHARACTERS, description="SQL LIKE pattern of the session id, e.g. checkout-%.")
    ] = ""
    sort: Annotated[
        str,
        Meta(
            pattern=f"^-?({'|'.join(VALUES)})$",
            description="The order; a minus puts the largest first, as -duration_seconds for the longest sessions.",
        ),
    ] = LATEST


class SessionRequests(PageArguments, kw_only=True, frozen=True):
    session_id: SessionId


@TOOLS.tool("Sessions")
def list_sessions(context: ToolContext, arguments: ListSessions) -> dict[str, Any]:
    """List sessions (conversations of the project's own users with models, and those with this agent), the latest
    active first, with number of requests, tokens, cost, errors and feedback of each. In another order (`sort`) only the
    first `limit` are listed. To find a session by what was said in it, use search_requests."""
    values = {**chosen(arguments, ["user_id", "operation", "name_pattern"]), **range_dates(context, arguments)}
    filters = SessionParameters(data=values).to_filter()
    if arguments.sort != LATEST:
        page = Page(arguments.limit, 0)
        whole = WholeSessionFilter(filters)
        found = sessions.session_listing(context.project_id, whole, sort=arguments.sort, limit=page.limit)
        return {**listed(Listing(found.count, found.results), page), "next_offset": None}
    page = page_of(arguments)
    return listed(sessions.sessions(context.project_id, filters, page), page)


@TOOLS.tool("Session")
def get_session(context: ToolContext, arguments: OneSession) -> dict[str, Any]:
    """One session: tokens by kind, cost, errors, average latency, models and providers used, users, duration and the
    latest feedback."""
    found = sessions.session(context.project_id, arguments.session_id)
    return {**found, "feedback": found["feedback"][:_MAX_FEEDBACK], "feedback_count": len(found["feedback"])}


@TOOLS.tool("Requests of a session")
def list_session_requests(context: ToolContext, arguments: SessionRequests) -> dict[str, Any]:
    """The requests of one session in the order they were made, with outcome, error, model, tokens, cost, latency and
    the beginning of prompt and completion. get_request has the whole texts."""
    page = page_of(arguments)
    return listed(sessions.session_requests(context.project_id, arguments.session_id, page), page)
