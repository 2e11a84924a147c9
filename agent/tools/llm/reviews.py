from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import Meta

from agent.tools.base import Arguments, Toolbox, ToolContext
from agent.tools.llm.scope import SCOPE
from agent.tools.pages import PageArguments, listed, page_of
from analytics.presenters import reviews

TOOLS = Toolbox(SCOPE)


class ListReviewQueues(PageArguments, kw_only=True, frozen=True):
    state: Annotated[Literal["open", "closed"] | None, Meta(description="Only queues in this state.")] = None


class OfQueue(Arguments, kw_only=True, frozen=True):
    queue_id: Annotated[UUID, Meta(description="Id of a review queue, as list_review_queues tells it.")]


@TOOLS.tool("Review queues")
def list_review_queues(context: ToolContext, arguments: ListReviewQueues) -> dict[str, Any]:
    """Queues of requests that people score by hand, the latest first: filter, or the evaluator whose due labels they
    take, rubric, and how many items are done, skipped and open."""
    page = page_of(arguments)
    return listed(reviews.queues(context.project_id, page, state=arguments.state or ""), page)


@TOOLS.tool("Agreement of reviewers")
def get_review_agreement(context: ToolContext, arguments: OfQueue) -> dict[str, Any]:
    """How far the people of a review queue agree with each judge on the same requests: share of equal verdicts, Cohen's
    kappa or correlation, each with its 95 percent interval and the number of requests; of due labels also how far two
    people agree."""
    return {**reviews.agreement(context.project_id, arguments.queue_id)}
