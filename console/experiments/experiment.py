"""The page of one experiment: how it stands, what each candidate did on average, and all answers side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponseRedirect
from django.http.response import HttpResponseBase

from console.experiments.answers import answers_context, to_dataset_address
from console.experiments.evaluators import in_address
from console.experiments.forms import NONE, SERVED, SIDES, ExperimentForm, in_words
from console.experiments.report import report_context
from core.errors import ApplicationError
from core.roles import Right
from core.ui.pages import Page, Visit
from core.ui.panels import Panel
from core.ui.registry import register_page
from gateway.experiments.candidates import candidates_of
from gateway.experiments.errors import ExperimentNotFoundError
from gateway.experiments.evaluators import evaluators_of
from gateway.experiments.selectors import experiment_detail, get_experiment
from gateway.experiments.services import cancel_experiment, delete_experiment, pick_winner
from gateway.experiments.shapes import ExperimentCandidate, ExperimentDetail
from gateway.models import Experiment
from gateway.tables.experiment import LABELS, TIE, UNFINISHED
from prompts.models import PromptConfig
from rollouts.models import Rollout

_SUMMARY_SECONDS, _ANSWERS_SECONDS = 3, 6


@register_page
class ExperimentPage(Page):
    route = "experiments/<uuid:experiment_id>/"
    name = "experiment"
    title = "Experiment"
    template = "experiments/experiment.html"
    parent = "experiments"
    methods = ("GET", "HEAD", "POST")

    def project_id(self, **route: Any) -> UUID | None:
        found = Experiment.objects.filter(pk=route["experiment_id"]).values_list("project_id", flat=True).first()
        if found is None:
            raise Http404("There is no such experiment.")
        return found

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        experiment = _experiment(visit, route)
        return {
            "title": experiment.name or "Experiment",
            "experiment": experiment,
            "filter": _filter_in_words(experiment),
            "may_edit": visit.may(Right.EDIT),
            # A shadow begins with a rollout alone.
            "again_address": ""
            if experiment.is_shadow
            else visit.link_if_there("experiment_form", **_same_candidates(experiment)),
            "dataset_address": _dataset_address(visit, experiment),
            "rollout_address": _rollout_address(visit, experiment),
            "evaluators": evaluators_of(experiment.evaluators),
            "to_dataset": to_dataset_address(visit, experiment),
        }

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        experiment = _experiment(visit, route)
        runs = experiment.state in UNFINISHED
        return [
            Panel(
                "summary",
                "Summary",
                "experiments/summary.html",
                lambda: _summary(visit, experiment.pk),
                is_wide=True,
                refresh_seconds=_SUMMARY_SECONDS if runs else 0,
            ),
            *_report_panels(visit, experiment),
            Panel(
                "answers",
                "Answers side by side",
                "experiments/answers.html",
                lambda: answers_context(visit, experiment.pk),
                is_wide=True,
                refresh_seconds=_ANSWERS_SECONDS if runs else 0,
            ),
        ]

    def post(self, visit: Visit, **route: Any) -> HttpResponseBase:
        visit.require(Right.EDIT)
        experiment, action = _experiment(visit, route), visit.request.POST.get("action", "")
        named: dict[str, Any] = {"project_id": visit.project.pk, "experiment_id": experiment.pk, "actor": visit.actor}
        try:
            if action == "delete":
                delete_experiment(**named)
                messages.success(visit.request, f"Deleted the experiment {experiment.name}.")
                return HttpResponseRedirect(visit.link("experiments"))
            if action == "cancel":
                cancel_experiment(**named)
                messages.success(visit.request, "Cancelled: calls that are under way are hung up.")
            if action == "pick":
                _pick(visit, named)
        except ApplicationError as error:
            messages.error(visit.request, error.message)
        return HttpResponseRedirect(_back(visit, experiment))


def _pick(visit: Visit, named: Mapping[str, Any]) -> None:
    given = visit.request.POST
    position, winner = given.get("position", ""), given.get("winner", "")
    if position.isdecimal() and len(position) < 5 and winner in (*LABELS, TIE, ""):
        pick_winner(**named, position=int(position), winner=winner)


def _back(visit: Visit, experiment: Experiment) -> str:
    position = visit.request.POST.get("position", "")
    place = f"#item-{position}" if position.isdecimal() else ""
    return visit.link("experiment", experiment.pk, p=visit.request.GET.get("p")) + place


def _experiment(visit: Visit, route: Mapping[str, Any]) -> Experiment:
    try:
        return get_experiment(visit.project.pk, route["experiment_id"])
    except ExperimentNotFoundError:
        raise Http404("There is no such experiment.") from None


def _filter_in_words(experiment: Experiment) -> list[str]:
    """Returns what its items were chosen by, as the form names it."""
    labels = {name: str(field.label or name) for name, field in ExperimentForm.base_fields.items()}
    given = {
        name: in_words(value) for name, value in experiment.filter.items() if name not in ("start_date", "end_date")
    }
    if config_id := given.get("prompt_config_id"):
        configs = PromptConfig.objects.for_project(experiment.project_id).filter(pk=config_id)
        given["prompt_config_id"] = configs.values_list("name", flat=True).first() or config_id
    return [f"{labels.get(name, name.replace('_', ' ')).lower()} {value}" for name, value in given.items()]


def _report_panels(visit: Visit, experiment: Experiment) -> list[Panel]:
    if not experiment.evaluators:
        return []
    seconds = _ANSWERS_SECONDS if experiment.state in UNFINISHED else 0
    load = partial(_report, visit, experiment.pk)
    return [Panel("report", "Verdict", "experiments/report.html", load, is_wide=True, refresh_seconds=seconds)]


def _report(visit: Visit, experiment_id: UUID) -> Mapping[str, Any]:
    return report_context(visit, get_experiment(visit.project.pk, experiment_id))


def _dataset_address(visit: Visit, experiment: Experiment) -> str:
    """Returns the address of the data set in the version that was answered; empty for one that is deleted."""
    counted: Any = experiment
    if counted.current_version is None:
        return ""
    version = str(experiment.dataset_version)
    return visit.link_if_there("dataset", visit.project.pk, experiment.dataset_id, version=version)


def _rollout_address(visit: Visit, experiment: Experiment) -> str:
    """Returns the address of the rollout whose shadow it is; empty for one that is gone."""
    if experiment.rollout_id is None or not Rollout.objects.filter(pk=experiment.rollout_id).exists():
        return ""
    return visit.link_if_there("rollouts_rollout_change", experiment.rollout_id)


def _same_candidates(experiment: Experiment) -> dict[str, Any]:
    """Returns the parameters of a form with this experiment's candidates, inputs, evaluators and limits."""
    found: dict[str, Any] = {}
    for side, candidate in zip(SIDES, candidates_of(experiment.candidates), strict=False):
        found[side] = candidate.version_id or (SERVED if side in SIDES[2:] else "")
        found[f"{side}_model"] = candidate.model
        found[f"{side}_temperature"] = candidate.temperature
    if len(experiment.candidates) == 1:
        found["b"] = NONE
    kept = {name: value for name, value in experiment.filter.items() if name not in ("start_date", "end_date")}
    return {
        **kept,
        **found,
        "dataset": experiment.dataset_id,
        "item_limit": experiment.item_limit,
        "judge": "on" if experiment.judge else "",
        "evaluator": [in_address(evaluator) for evaluator in evaluators_of(experiment.evaluators)],
        "repeats": experiment.repeats,
        "baseline": experiment.baseline,
        "margin": experiment.margin,
        "reuse": "" if experiment.reuse else "off",
        "max_cost_usd": experiment.max_cost_usd,
    }


def _summary(visit: Visit, experiment_id: UUID) -> Mapping[str, Any]:
    detail = experiment_detail(get_experiment(visit.project.pk, experiment_id))
    pairs = list(zip(detail["candidates"], detail["summary"], strict=True))
    return {
        "detail": detail,
        "pairs": pairs,
        "runs": detail["state"] in UNFINISHED,
        "total_cost": sum(row["total_cost_usd"] for row in detail["summary"]),
        "roll_outs": [(candidate, link) for candidate, _ in pairs if (link := _roll_out(visit, candidate))],
        "names": {candidate["label"]: candidate["title"] for candidate in detail["candidates"]},
        "leader": _leader(detail),
    }


def _roll_out(visit: Visit, candidate: ExperimentCandidate) -> str:
    """Returns the address of a rollout's form for the candidate's version; empty where it cannot be rolled out."""
    config_id = candidate["prompt_config_id"]
    if config_id is None:
        return ""
    config = PromptConfig.objects.for_project(visit.project.pk).filter(pk=config_id).first()
    if config is None or config.has_active_rollout or config.active_version_id == candidate["version_id"]:
        return ""
    return visit.link_if_there("rollout_form", config=config.pk, target=candidate["version_id"])


def _leader(detail: ExperimentDetail) -> str:
    """Returns what the verdicts say in one sentence; empty without any."""
    figures = detail["summary"]
    if not figures or not figures[0]["compared"]:
        return ""
    shares = {row["win_rate"] for row in figures}
    if len(shares) == 1:
        return f"No difference: {figures[0]['ties']} of {figures[0]['compared']} tied."
    best = max(figures, key=lambda row: row["win_rate"] or 0)
    low, share = best["win_rate_low"] or 0, best["win_rate"] or 0
    counted = f"{best['wins']} of {best['compared']} won, {best['ties']} tied"
    if len(figures) == 2 and low > 0.5:
        return f"{best['label']} is better: {share:.0%} ({counted}), and the interval begins above one half."
    return f"{best['label']} leads with {share:.0%} ({counted}); the items are too few to tell."
