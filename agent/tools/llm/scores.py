from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import Meta

from agent.tools.base import Toolbox, ToolContext
from agent.tools.fields import OfSession, SessionId
from agent.tools.llm.scope import SCOPE
from agent.tools.pages import (
    PageArguments,
    PagedRangeArguments,
    chosen,
    filtered,
    listed,
    listed_rows,
    page_of,
)
from agent.tools.ranges import date_range, range_dates
from analytics.models import EVALUATOR_CHARACTERS, REQUEST_ID_CHARACTERS, SCORE_NAME_CHARACTERS
from analytics.parameters.scores import ScoreMetricsParameters
from analytics.presenters import scores
from analytics.scores import selectors
from analytics.scores.filters import ScoreFilter
from analytics.wire.feedback import FeedbackSerializer, ScoreSerializer

_NAMES = ("score_name", "score_type", "evaluator_type")

_Name = Annotated[str, Meta(max_length=SCORE_NAME_CHARACTERS, description="Only scores of this name, e.g. relevance.")]
_Kind = Annotated[Literal["number", "boolean", "category"] | None, Meta(description="Only scores of this type.")]
_Evaluator = Annotated[
    str,
    Meta(max_length=EVALUATOR_CHARACTERS, description="Only by this kind of evaluator: human, llm_judge, code, user."),
]


TOOLS = Toolbox(SCOPE)


class ListScores(PagedRangeArguments, kw_only=True, frozen=True):
    request_id: Annotated[str, Meta(max_length=REQUEST_ID_CHARACTERS, description="Only of this request.")] = ""
    session_id: OfSession = ""
    score_name: _Name = ""
    score_type: _Kind = None
    evaluator_type: _Evaluator = ""


class ScoreMetrics(PagedRangeArguments, kw_only=True, frozen=True):
    group_by: Annotated[
        Literal["none", "model", "prompt_version", "variant", "evaluator_type"],
        Meta(description="What to compare: models, prompt versions, arms of rollouts or kinds of evaluators."),
    ] = "none"
    score_name: _Name = ""
    score_type: _Kind = None
    evaluator_type: _Evaluator = ""


class SessionFeedback(PageArguments, kw_only=True, frozen=True):
    session_id: SessionId
    request_id: Annotated[UUID | None, Meta(description="Only about the answer to this request.")] = None


class FeedbackMetrics(PagedRangeArguments, kw_only=True, frozen=True):
    group_by: Annotated[
        Literal["none", "model", "prompt_version", "variant"],
        Meta(description="Instead of days, what to compare: of feedback that names a request, by what that was."),
    ] = "none"


@TOOLS.tool("Scores")
def list_scores(context: ToolContext, arguments: ListScores) -> dict[str, Any]:
    """List evaluation scores, the latest first: name, value, type, reason and who gave them. Give request_id for those
    of one request, session_id for those of a session."""
    values = {**chosen(arguments, (*_NAMES, "request_id")), **range_dates(context, arguments)}
    rows = filtered(ScoreFilter, values, selectors.list_scores(context.project_id))
    if arguments.session_id:
        rows = rows.filter(request_id__in=scores.session_request_ids(context.project_id, arguments.session_id))
    return listed_rows(rows, ScoreSerializer, arguments)


@TOOLS.tool("Score metrics")
def get_score_metrics(context: ToolContext, arguments: ScoreMetrics) -> dict[str, Any]:
    """Count, mean, minimum, maximum and distribution of each score in a range of time, by default the last 30 days;
    with group_by also per model, prompt version, rollout arm or evaluator."""
    between = date_range(context, arguments)
    dates = {"start_date": between.start.isoformat(), "end_date": between.end.isoformat()}
    values = {**chosen(arguments, (*_NAMES, "group_by")), **dates}
    filters, group_by = ScoreMetricsParameters(data=values).to_filter_and_grouping()
    page = page_of(arguments)
    return listed(scores.score_metrics(context.project_id, filters, group_by, page), page)


@TOOLS.tool("Feedback on a session")
def list_session_feedback(context: ToolContext, arguments: SessionFeedback) -> dict[str, Any]:
    """What people said about one session or, with request_id, about one of its answers: a score of 1 to 5, a text or
    both; the latest first."""
    rows = selectors.list_feedback(context.project_id, arguments.session_id)
    if arguments.request_id is not None:
        rows = selectors.list_feedback_of_request(context.project_id, arguments.session_id, arguments.request_id)
    return listed_rows(rows, FeedbackSerializer, arguments)


@TOOLS.tool("Feedback metrics")
def get_feedback_metrics(context: ToolContext, arguments: FeedbackMetrics) -> dict[str, Any]:
    """Feedback on sessions per UTC day, the earliest first: how many, mean score, how often each score; with group_by
    per model, prompt version or rollout arm, where it names a request. By default of the last 30 days."""
    between, page = date_range(context, arguments), page_of(arguments)
    found = scores.feedback_metrics(context.project_id, between.start, between.end, page, arguments.group_by)
    return listed(found, page)


@TOOLS.tool("Answers rated bad")
def list_bad_ratings(context: ToolContext, arguments: PagedRangeArguments) -> dict[str, Any]:
    """Of each prompt version's answered requests, how many were rated 1 or 2 within 24 hours; those younger than that
    are counted apart. By default of the last 30 days."""
    between, page = date_range(context, arguments), page_of(arguments)
    return listed(scores.bad_rating_metrics(context.project_id, between.start, between.end, page), page)
