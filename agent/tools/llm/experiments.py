"""Tools about experiments. They only read: an experiment would cost the project money."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import Meta

from agent.tools.base import Arguments, Toolbox, ToolContext
from agent.tools.fields import OfModel
from agent.tools.llm.scope import SCOPE
from agent.tools.pages import PageArguments, RangeArguments, chosen, listed_each
from agent.tools.ranges import range_dates
from core.roles import Right
from gateway.experiments import selectors, shapes
from gateway.experiments.estimate import estimate
from gateway.experiments.plan import MAX_ITEMS
from gateway.experiments.serializers import MAX_CANDIDATES, MAX_REPEATS, NewExperimentSerializer

# Of each target; further ones say little more, and the items with all scores are a call away.
_WORST_ITEMS = 5
_MAX_32 = 2**31 - 1
_FILTERS = ("model", "prompt_config_id", "prompt_version")

_Version = Annotated[int, Meta(ge=1, le=_MAX_32)]


TOOLS = Toolbox(SCOPE)


class ListExperiments(PageArguments, kw_only=True, frozen=True):
    dataset_id: Annotated[UUID | None, Meta(description="Only over this data set.")] = None
    state: Annotated[shapes.State | None, Meta(description="Only in this state.")] = None
    verdict: Annotated[shapes.VerdictName | None, Meta(description="Only those that found this.")] = None


class OneExperiment(Arguments, kw_only=True, frozen=True):
    experiment_id: Annotated[UUID, Meta(description="Id of an experiment, as list_experiments tells it.")]


class ListExperimentItems(PageArguments, kw_only=True, frozen=True):
    experiment_id: Annotated[UUID, Meta(description="Id of an experiment, as list_experiments tells it.")]


class NewCandidate(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    version_id: Annotated[UUID | None, Meta(description="Id of a version of a prompt.")] = None
    model: Annotated[Annotated[str, Meta(max_length=512)] | None, Meta(description="A model.")] = None
    temperature: Annotated[Annotated[float, Meta(ge=0, le=2)] | None, Meta(description="A temperature.")] = None
    max_tokens: Annotated[
        Annotated[int, Meta(ge=1, le=1_000_000)] | None, Meta(description="The longest answer in tokens.")
    ] = None


class EstimateExperiment(RangeArguments, kw_only=True, frozen=True):
    candidates: Annotated[
        list[NewCandidate],
        Meta(
            min_length=1,
            max_length=MAX_CANDIDATES,
            description=(
                "What is compared, A first: a version of a prompt, a model, parameters; what a candidate leaves out"
                " stays as the item has it. At least two without a data set."
            ),
        ),
    ]
    dataset_id: Annotated[
        UUID | None, Meta(description="The data set whose items are answered; past requests without one.")
    ] = None
    dataset_version: Annotated[_Version | None, Meta(description="A version of it; the latest if left out.")] = None
    item_limit: Annotated[
        Annotated[int, Meta(ge=1, le=MAX_ITEMS)] | None,
        Meta(description="How many items; by default 400 of a data set, 20 past requests."),
    ] = None
    repeats: Annotated[
        int, Meta(ge=1, le=MAX_REPEATS, description="How many answers each candidate gives to each item.")
    ] = 1
    reuse: Annotated[bool, Meta(description="Whether answers that earlier experiments paid for are taken.")] = True
    order: Annotated[Literal["newest", "random"], Meta(description="Which past requests are taken.")] = "newest"
    model: OfModel = ""
    prompt_config_id: Annotated[UUID | None, Meta(description="Only past requests with this prompt config.")] = None
    prompt_version: Annotated[_Version | None, Meta(description="Only past requests with this version number.")] = None


@TOOLS.tool("Experiments")
def list_experiments(context: ToolContext, arguments: ListExperiments) -> dict[str, Any]:
    """List experiments (versions of a prompt, models or parameters that answered the same inputs side by side), the
    newest first: state, candidates, data set, evaluators, what was spent, and the verdict (passed, worse, undecided).
    Use it to find out whether a version was tried before a rollout."""
    rows = selectors.list_experiments(context.project_id, **chosen(arguments, ["dataset_id", "state", "verdict"]))
    return listed_each(rows, selectors.experiment_entry, arguments)


@TOOLS.tool("Experiment")
def get_experiment(context: ToolContext, arguments: OneExperiment) -> dict[str, Any]:
    """One experiment: how far it is, why it ended, each candidate's answers, failures, cost and latency, and its
    report: of each target against the baseline the verdict with its explanation, the figures of each evaluator, the
    tags in which it is worse, and the five items on which it loses most. Ask this before saying that a version is
    better or worse. For an item's texts ask list_experiment_items with limit 1 and its position less 1 as offset."""
    found = selectors.experiment_detail(selectors.get_experiment(context.project_id, arguments.experiment_id))
    report = found["report"]
    if report is None or not report["targets"]:
        return {**found}
    targets = [{**target, "worst_items": target["worst_items"][:_WORST_ITEMS]} for target in report["targets"]]
    # The report has the means of each evaluator already, over the pairs that the verdict is about.
    summary = [{name: value for name, value in one.items() if name != "scores"} for one in found["summary"]]
    return {**found, "summary": summary, "report": {**report, "targets": targets}}


@TOOLS.tool("Items of an experiment")
def list_experiment_items(context: ToolContext, arguments: ListExperimentItems) -> dict[str, Any]:
    """The items of an experiment by position, each with the answers of all candidates, their scores with what a judge
    said, cost, latency and errors, and the winner that a person picked."""
    rows = selectors.list_items(selectors.get_experiment(context.project_id, arguments.experiment_id))
    sees_content = Right.READ_CONTENT in context.granted.rights
    return listed_each(rows, partial(selectors.item_entry, sees_content=sees_content), arguments)


@TOOLS.tool("Cost of an experiment")
def estimate_experiment(context: ToolContext, arguments: EstimateExperiment) -> dict[str, Any]:
    """What an experiment would cost before anybody begins it: items, answers, answers that are there already, and the
    cost of each candidate, null where no price is known; judges are not included. Nothing is made: people begin
    experiments on the page Experiments."""
    values = chosen(arguments, ["dataset_id", "dataset_version", "item_limit", "repeats", "reuse", "order"])
    given = {
        **values,
        "candidates": arguments.candidates,
        "filter": {**chosen(arguments, _FILTERS), **range_dates(context, arguments)},
    }
    body = NewExperimentSerializer(data=msgspec.to_builtins(given))
    body.is_valid(raise_exception=True)
    return {**estimate(context.project_id, body.new_experiment())}
