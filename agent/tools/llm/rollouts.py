from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import Meta

from agent.tools.base import Arguments, Toolbox, ToolContext
from agent.tools.llm.scope import SCOPE
from agent.tools.pages import PageArguments, chosen, filtered, listed_rows
from rollouts import selectors
from rollouts.comparison.wire import comparison
from rollouts.selectors import RolloutFilter
from rollouts.serializers import RolloutDetailSerializer, RolloutSerializer
from rollouts.states import Status

# The figures of a transition that are shown; all of them would fill a page each.
_FIGURES = ("status", "decision", "reason", "explanation", "gate")


TOOLS = Toolbox(SCOPE)


class ListRollouts(PageArguments, kw_only=True, frozen=True):
    config_id: Annotated[UUID | None, Meta(description="Only of this prompt config.")] = None
    status: Annotated[Status | None, Meta(description="Only in this state.")] = None
    mode: Annotated[
        Literal["auto", "manual"] | None,
        Meta(description="Only those moved by people, or only by the automatic verdict."),
    ] = None


class OneRollout(Arguments, kw_only=True, frozen=True):
    rollout_id: Annotated[UUID, Meta(description="Id of the rollout, as list_rollouts tells it.")]


@TOOLS.tool("Rollouts")
def list_rollouts(context: ToolContext, arguments: ListRollouts) -> dict[str, Any]:
    """List rollouts (staged A/B tests of a prompt version against the one before), the newest first, with state, stage,
    share of traffic, the latest verdict in short, and the gate: which experiment has to pass before it begins, and
    whether it has. Give status=running for those going on."""
    values = chosen(arguments, ["config_id", "status", "mode"])
    rows = filtered(RolloutFilter, values, selectors.list_rollouts(context.project_id))
    return listed_rows(rows, RolloutSerializer, arguments)


@TOOLS.tool("Rollout")
def get_rollout(context: ToolContext, arguments: OneRollout) -> dict[str, Any]:
    """One rollout with its stages, its gate (kind, state, reason, and the experiment that opened it, or by whom it was
    overridden) and everything that happened to it: who moved it, when and why."""
    found = RolloutDetailSerializer(selectors.get_rollout(context.project_id, arguments.rollout_id)).data
    return {**found, "transitions": [_short(transition) for transition in found["transitions"]]}


def _short(transition: dict[str, Any]) -> dict[str, Any]:
    figures = transition["figures"] or {}
    return {**transition, "figures": {name: figures[name] for name in _FIGURES if name in figures}}


@TOOLS.tool("Rollout metrics")
def get_rollout_metrics(context: ToolContext, arguments: OneRollout) -> dict[str, Any]:
    """Target against baseline: requests, how many went unanswered and why, error rate, latency, cost, the verdict per
    metric with its explanation, overall_status (passing, failing, inconclusive), the decision (promote, roll_back,
    wait) and how long the present stage takes. Ask this before saying whether a rollout is safe to promote."""
    shown = comparison(selectors.get_rollout(context.project_id, arguments.rollout_id))
    # There may be a hundred segments, of which only those with a warning are worth a model's time.
    return {**shown, "segments": [one for one in shown["segments"] if one["named"]]}
