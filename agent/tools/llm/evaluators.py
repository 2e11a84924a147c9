"""Tools about evaluators. No tool runs an evaluator: a judge would cost the project money."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import Meta

from agent.tools.base import Arguments, Toolbox, ToolContext
from agent.tools.llm.scope import SCOPE
from agent.tools.pages import PageArguments, chosen, listed_rows
from analytics.evaluators.calibration.calibrate import calibrate
from analytics.evaluators.calibration.wire import calibration_entry
from analytics.evaluators.definitions import KINDS
from analytics.evaluators.selectors import get_with_versions, list_with_versions
from analytics.evaluators.services import MAX_VERSIONS
from analytics.serializers.evaluators import EvaluatorSerializer
from core.errors import ValidationError

TOOLS = Toolbox(SCOPE)


class ListEvaluators(PageArguments, kw_only=True, frozen=True):
    state: Annotated[Literal["active", "archived"] | None, Meta(description="Only evaluators in this state.")] = None
    kind: Annotated[
        Annotated[str, Meta(max_length=20)] | None, Meta(description="Only of this kind, such as contains or judge.")
    ] = None


class OneEvaluator(Arguments, kw_only=True, frozen=True):
    evaluator_id: Annotated[UUID, Meta(description="Id of an evaluator, as list_evaluators tells it.")]


class OneCalibration(OneEvaluator, kw_only=True, frozen=True):
    version: Annotated[
        Annotated[int, Meta(ge=1, le=MAX_VERSIONS)] | None, Meta(description="Of this version; the newest without it.")
    ] = None


@TOOLS.tool("Evaluators")
def list_evaluators(context: ToolContext, arguments: ListEvaluators) -> dict[str, Any]:
    """How the project's answers are scored, by name: rules, similarity and judges, each with its kind, state, versions
    and definition, and whether a score asks a model."""
    if arguments.kind is not None and arguments.kind not in KINDS:
        raise ValidationError.of_field("kind", f"There is no such kind. There are {', '.join(KINDS)}.")
    rows = list_with_versions(context.project_id).filter(**chosen(arguments, ["state", "kind"]))
    return listed_rows(rows, EvaluatorSerializer, arguments)


@TOOLS.tool("One evaluator")
def get_evaluator(context: ToolContext, arguments: OneEvaluator) -> dict[str, Any]:
    """One evaluator with its definition, the score from which an answer is good, and all of its versions, the newest
    first."""
    return dict(EvaluatorSerializer(get_with_versions(context.project_id, arguments.evaluator_id)).data)


@TOOLS.tool("Calibration of an evaluator")
def get_evaluator_calibration(context: ToolContext, arguments: OneCalibration) -> dict[str, Any]:
    """How far a judge agrees with people on the same answers, its calibration: how many answers have a label,
    sensitivity, specificity, kappa and bias with intervals, by prompt version and by arm, which models judged, the
    state, and what is missing until it is calibrated. Ask this before trusting a judge's scores."""
    return {**calibration_entry(calibrate(context.project_id, arguments.evaluator_id, arguments.version))}
