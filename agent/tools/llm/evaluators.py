"""Tools about evaluators: how answers are scored. None tries one: a judge would cost the project money."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import Meta

from agent.tools.base import Arguments, Tool, ToolContext
from agent.tools.llm.scope import SCOPE
from agent.tools.pages import PageArguments, chosen, listed_rows, page_of
from analytics.evaluators.definitions import KINDS
from analytics.evaluators.selectors import get_with_versions, list_with_versions
from analytics.serializers.evaluators import EvaluatorSerializer
from core.errors import ValidationError


class ListEvaluators(PageArguments, kw_only=True, frozen=True):
    state: Annotated[Literal["active", "archived"] | None, Meta(description="Only evaluators in this state.")] = None
    kind: Annotated[
        Annotated[str, Meta(max_length=20)] | None, Meta(description="Only of this kind, such as contains or judge.")
    ] = None


class OneEvaluator(Arguments, kw_only=True, frozen=True):
    evaluator_id: Annotated[UUID, Meta(description="Id of an evaluator, as list_evaluators tells it.")]


def _list_evaluators(context: ToolContext, arguments: ListEvaluators) -> dict[str, Any]:
    if arguments.kind is not None and arguments.kind not in KINDS:
        raise ValidationError.of_field("kind", f"There is no such kind. There are {', '.join(KINDS)}.")
    rows = list_with_versions(context.project_id).filter(**chosen(arguments, ["state", "kind"]))
    return listed_rows(rows, EvaluatorSerializer, page_of(arguments))


def _get_evaluator(context: ToolContext, arguments: OneEvaluator) -> dict[str, Any]:
    return dict(EvaluatorSerializer(get_with_versions(context.project_id, arguments.evaluator_id)).data)


TOOLS: tuple[Tool, ...] = (
    Tool(
        name="list_evaluators",
        scope=SCOPE,
        title="Evaluators",
        description=(
            "How the project's answers are scored, by name: rules, similarity and judges, each with its kind, state,"
            " versions and definition, and whether a score asks a model."
        ),
        arguments=ListEvaluators,
        run=_list_evaluators,
    ),
    Tool(
        name="get_evaluator",
        scope=SCOPE,
        title="One evaluator",
        description=(
            "One evaluator with its definition, the score from which an answer is good, and all of its versions, the"
            " newest first."
        ),
        arguments=OneEvaluator,
        run=_get_evaluator,
    ),
)
