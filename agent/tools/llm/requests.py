from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from msgspec import Meta

from agent.tools.base import Arguments, Toolbox, ToolContext
from agent.tools.fields import ID_CHARACTERS, OfModel, OfOperation, OfProvider, OfSession, OfUser, RequestId
from agent.tools.llm.scope import SCOPE
from agent.tools.pages import DEFAULT_LIMIT, Limit, PagedRangeArguments, RangeArguments, chosen, listed, page_of
from agent.tools.ranges import range_dates
from analytics.parameters.requests import MAXIMUM_QUERY, RequestParameters, SearchBody
from analytics.presenters import requests
from analytics.queries.search import search
from analytics.request_log.record import Outcome
from analytics.wire.search import SearchResults, search_results

_MAX_32 = 2**32 - 1
_MAX_USD = 99_999_999
_PLACES = 10
_AGENT = "agent"

_Milliseconds = Annotated[int, Meta(ge=0, le=_MAX_32)]
_Dollars = Annotated[float, Meta(ge=0, le=_MAX_USD)]
_NAMES = (
    "outcome", "status_code", "session_id", "user_id", "model", "requested_model", "provider", "error_type",
    "error_code", "source", "operation", "prompt_config_id", "prompt_version", "rollout_id", "variant",
    "min_latency_ms", "max_latency_ms", "min_cost_usd", "max_cost_usd",
)  # fmt: skip


TOOLS = Toolbox(SCOPE)


class ListRequests(PagedRangeArguments, kw_only=True, frozen=True):
    outcome: Annotated[
        Outcome | None,
        Meta(description="error for failed requests; interrupted: the worker died; cancelled: the client left."),
    ] = None
    status_code: Annotated[
        Annotated[int, Meta(ge=0, le=999)] | None, Meta(description="Only with this HTTP status.")
    ] = None
    session_id: OfSession = ""
    user_id: OfUser = ""
    model: OfModel = ""
    requested_model: Annotated[
        str, Meta(max_length=ID_CHARACTERS, description="Only where the client asked for this model, e.g. auto.")
    ] = ""
    provider: OfProvider = ""
    error_type: Annotated[str, Meta(max_length=ID_CHARACTERS, description="Only errors of this type.")] = ""
    error_code: Annotated[
        str, Meta(max_length=ID_CHARACTERS, description="Only errors of this code, e.g. provider_timeout.")
    ] = ""
    source: Annotated[
        str, Meta(max_length=ID_CHARACTERS, description="Only made by this part: gateway, playground, judge, agent.")
    ] = ""
    operation: OfOperation = None
    prompt_config_id: Annotated[UUID | None, Meta(description="Only served with this prompt config.")] = None
    prompt_version: Annotated[
        Annotated[int, Meta(ge=0, le=_MAX_32)] | None,
        Meta(description="Only with this version number of the prompt."),
    ] = None
    rollout_id: Annotated[UUID | None, Meta(description="Only of this rollout.")] = None
    variant: Annotated[
        str, Meta(max_length=ID_CHARACTERS, description="Only of this arm of a rollout: target or baseline.")
    ] = ""
    min_latency_ms: Annotated[_Milliseconds | None, Meta(description="Only slower ones, e.g. 5000.")] = None
    max_latency_ms: Annotated[_Milliseconds | None, Meta(description="Only faster ones.")] = None
    min_cost_usd: Annotated[_Dollars | None, Meta(description="Only with a higher cost, in US dollars.")] = None
    max_cost_usd: Annotated[_Dollars | None, Meta(description="Only cheaper ones, in US dollars.")] = None


class OneRequest(Arguments, kw_only=True, frozen=True):
    request_id: RequestId
    include_bodies: Annotated[
        bool, Meta(description="Whether to return the whole request and response as they went over the wire.")
    ] = True


class SearchRequests(RangeArguments, kw_only=True, frozen=True):
    query: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=MAXIMUM_QUERY,
            description=(
                'Words, and phrases in double quotes, that must all occur: refund "order number". Letter case does not'
                " matter."
            ),
        ),
    ]
    limit: Limit = DEFAULT_LIMIT
    model: OfModel = ""
    operation: OfOperation = None
    user_id: OfUser = ""
    session_id: OfSession = ""


@TOOLS.tool("Requests")
def list_requests(context: ToolContext, arguments: ListRequests) -> dict[str, Any]:
    """List model requests, the newest first, narrowed by any of the filters. For failures give outcome=error, for slow
    requests min_latency_ms, for expensive ones min_cost_usd. Each has outcome, error, model, tokens, cost, latency,
    attempts and the beginning of prompt and completion."""
    values = {name: _plain(value) for name, value in chosen(arguments, _NAMES).items()}
    page = page_of(arguments)
    filters = RequestParameters(data={**values, **range_dates(context, arguments)}).to_filter()
    return listed(requests.requests(context.project_id, filters, page), page)


def _plain(value: Any) -> str:
    return f"{value:.{_PLACES}f}" if isinstance(value, float) else str(value)


@TOOLS.tool("Request")
def get_request(context: ToolContext, arguments: OneRequest) -> dict[str, Any]:
    """One request in full: messages sent and answer received (long ones cut), error, attempts at providers, verdicts of
    guardrails, and its scores."""
    found = requests.request(context.project_id, arguments.request_id)
    if arguments.include_bodies:
        return {**found}
    return {name: value for name, value in found.items() if name not in ("request", "response")}


@TOOLS.tool("Search")
def search_requests(context: ToolContext, arguments: SearchRequests) -> dict[str, Any]:
    """Find requests by text in prompts and completions, the newest first, with the text around the match. Use it to
    find the session or user that said something: each result names both. What this agent asked itself is left out,
    unless session_id is given."""
    dates = range_dates(context, arguments)
    values = {
        **chosen(arguments, ["query", "limit", "model", "operation", "user_id", "session_id"]),
        **{name.replace("_date", "_time"): text for name, text in dates.items()},
    }
    filters, limit = SearchBody(data=values).to_filter_and_limit()
    found = search_results(search(context.project_id, filters, limit=limit))
    shown = _without_own(found, named=bool(arguments.session_id))
    if not found["has_more"]:
        return shown
    oldest = found["results"][-1]["created_at"]
    return {**shown, "older": f"The same again with end_date before {oldest.isoformat()} finds older ones."}


def _without_own(found: SearchResults, *, named: bool) -> dict[str, Any]:
    """Leaves out the agent's own requests: a question about a word is in the log too, and newer than all others.
    `named` searches are within one session and keep them."""
    others = [result for result in found["results"] if named or result["source"] != _AGENT]
    left_out = len(found["results"]) - len(others)
    return {**found, "count": len(others), "left_out_asked_by_agent": left_out, "results": others}
