from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from django.http import HttpResponseRedirect
from django.http.response import HttpResponseBase

from console.experiments.answers import answers_context, to_dataset_address
from console.experiments.evaluators import in_address
from console.experiments.forms import NONE, SERVED, SIDES, ExperimentForm, in_words
from console.experiments.report import report_context
from core.roles import Right
from core.ui.edit import EditPage
from core.ui.pages import Visit
from core.ui.panels import Panel
from gateway.experiments.candidates import candidates_of
from gateway.experiments.evaluators import evaluators_of
from gateway.experiments.selectors import experiment_detail, get_experiment
from gateway.experiments.services import cancel_experiment, delete_experiment, pick_winner
from gateway.experiments.shapes import ExperimentCandidate, ExperimentDetail
from gateway.models import Experiment
from gateway.tables.experiment import LABELS, TIE, UNFINISHED
from prompts.models import PromptConfig
from rollouts.models import Rollout

_SUMMARY_SECONDS, _ANSWERS_SECONDS = 3, 6


class ExperimentPage(EditPage[Experiment, Any]):
    route = "experiments/<uuid:experiment_id>/"
    name = "experiment"
    title = "Experiment"
    parent = "experiments"
    model = Experiment
    right = Right.EDIT
    saves = ()

    def record(self, visit: Visit, **route: Any) -> Experiment:
        return get_experiment(visit.project.pk, route["experiment_id"])

    def shown(self, visit: Visit, record: Experiment, form: None) -> Mapping[str, Any]:
        again = {} if record.is_shadow else _same_candidates(record)
        return {
            "title": record.name or "Experiment",
            "experiment": record,
            "filter": _filter_in_words(record),
            # A shadow begins with a rollout alone.
            "again_address": visit.link_if_there("experiment_form", **again) if again else "",
            "dataset_address": _dataset_address(visit, record),
            "rollout_address": _rollout_address(visit, record),
            "evaluators": evaluators_of(record.evaluators),
            "to_dataset": to_dataset_address(visit, record),
        }

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        experiment = self.record(visit, **route)
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

    def address(self, visit: Visit, record: Experiment) -> str:
        position = visit.request.POST.get("position", "")
        place = f"#item-{position}" if position.isdecimal() else ""
        return visit.link("experiment", record.pk, p=visit.request.GET.get("p")) + place

    def do_delete(self, visit: Visit, record: Experiment) -> HttpResponseBase:
        delete_experiment(**_named(visit, record))
        return visit.done(f"Deleted the experiment {record.name}.", visit.link("experiments"))

    def do_cancel(self, visit: Visit, record: Experiment) -> HttpResponseBase:
        cancel_experiment(**_named(visit, record))
        return visit.done("Cancelled: calls that are under way are hung up.", self.address(visit, record))

    def do_pick(self, visit: Visit, record: Experiment) -> HttpResponseBase:
        given = visit.request.POST
        position, winner = given.get("position", ""), given.get("winner", "")
        if position.isdecimal() and len(position) < 5 and winner in (*LABELS, TIE, ""):
            pick_winner(**_named(visit, record), position=int(position), winner=winner)
        return HttpResponseRedirect(self.address(visit, record))


def _named(visit: Visit, experiment: Experiment) -> dict[str, Any]:
    return {"project_id": visit.project.pk, "experiment_id": experiment.pk, "actor": visit.actor}


def _filter_in_words(experiment: Experiment) -> list[str]:
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
    counted: Any = experiment
    if counted.current_version is None:
        return ""
    version = str(experiment.dataset_version)
    return visit.link_if_there("dataset", visit.project.pk, experiment.dataset_id, version=version)


def _rollout_address(visit: Visit, experiment: Experiment) -> str:
    if experiment.rollout_id is None or not Rollout.objects.filter(pk=experiment.rollout_id).exists():
        return ""
    return visit.link_if_there("rollouts_rollout_change", experiment.rollout_id)


def _same_candidates(experiment: Experiment) -> dict[str, Any]:
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
    config_id = candidate["prompt_config_id"]
    if config_id is None:
        return ""
    config = PromptConfig.objects.for_project(visit.project.pk).filter(pk=config_id).first()
    if config is None or config.has_active_rollout or config.active_version_id == candidate["version_id"]:
        return ""
    return visit.link_if_there("rollout_form", config=config.pk, target=candidate["version_id"])


def _leader(detail: ExperimentDetail) -> str:
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
