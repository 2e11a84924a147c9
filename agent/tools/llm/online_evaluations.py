from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import Meta

from agent.tools.base import Arguments, Toolbox, ToolContext
from agent.tools.llm.scope import SCOPE
from agent.tools.pages import PageArguments, chosen, listed_each
from analytics.online_evaluations import selectors
from analytics.online_evaluations.selectors import progress_of
from analytics.online_evaluations.wire import evaluation_detail, evaluation_entry

TOOLS = Toolbox(SCOPE)


class ListOnlineEvaluations(PageArguments, kw_only=True, frozen=True):
    state: Annotated[Literal["active", "paused"] | None, Meta(description="Only those in this state.")] = None
    evaluator_id: Annotated[UUID | None, Meta(description="Only those of this evaluator.")] = None


class OneOnlineEvaluation(Arguments, kw_only=True, frozen=True):
    evaluation_id: Annotated[UUID, Meta(description="Id of an online evaluation, as list_online_evaluations tells it.")]


@TOOLS.tool("Online evaluations")
def list_online_evaluations(context: ToolContext, arguments: ListOnlineEvaluations) -> dict[str, Any]:
    """Which evaluators score a sample of the answers while they are served, the newest first: evaluator with the
    version that scores now, filter, share, budget of a month, and whether it is active or paused."""
    rows = selectors.list_online_evaluations(context.project_id).filter(**chosen(arguments, ["state", "evaluator_id"]))
    return listed_each(rows, evaluation_entry, arguments)


@TOOLS.tool("One online evaluation")
def get_online_evaluation(context: ToolContext, arguments: OneOnlineEvaluation) -> dict[str, Any]:
    """One online evaluation with its counts, of all that is kept and of the last hour: answers that the sample took,
    how many are due, done, and missing by reason, since when the oldest is due, what was spent of the month's budget,
    and the cost of the last day. Ask this before trusting scores: those that are missing may differ from those that are
    there. get_score_metrics has the scores, by the evaluator's title."""
    row = selectors.get_online_evaluation(context.project_id, arguments.evaluation_id)
    return {**evaluation_detail(row, progress_of(row))}
