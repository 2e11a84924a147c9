from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from console.experiments.answers import to_dataset_address
from console.experiments.rows import verdict_mark
from core.ui.formats import MINUS, NONE
from core.ui.pages import Visit
from gateway.experiments.candidates import Candidate, candidates_of
from gateway.experiments.selectors import item_entry, list_items
from gateway.experiments.shapes import ExperimentAnswerEntry, TargetReport
from gateway.models import Experiment
from gateway.tables.experiment import UNFINISHED
from prompts.models import PromptConfig

_REASONS = {"not_answered": "not answered", "answer_failed": "the answer failed"}


@dataclass(frozen=True, slots=True)
class WorstPair:
    """An item on which the target did worst. `answers` is empty without texts, or if the item is gone."""

    position: int
    difference: str
    preview: str
    scores: Sequence[tuple[str, str, str]]
    answers: Sequence[tuple[str, ExperimentAnswerEntry]]


@dataclass(frozen=True, slots=True)
class ShownTarget:
    report: TargetReport
    mark: Any
    rows: Sequence[Mapping[str, Any]]
    worst: Sequence[WorstPair]
    gate_address: str
    to_dataset: str


def report_context(visit: Visit, experiment: Experiment) -> Mapping[str, Any]:
    report = experiment.report
    runs = experiment.state in UNFINISHED
    if not report:
        return {"runs": runs, "has_baseline": bool(experiment.baseline)}
    entries = _entries(visit, experiment, report["targets"])
    return {
        "report": report,
        "runs": runs,
        "baseline": experiment.baseline,
        "mark": verdict_mark(experiment.verdict),
        "stopped_early": experiment.stopped_early,
        "targets": [_target(visit, experiment, target, entries) for target in report["targets"]],
        "sees_content": visit.sees_content,
    }


def _entries(visit: Visit, experiment: Experiment, targets: Sequence[TargetReport]) -> dict[int, Any]:
    positions = {one["position"] for target in targets for one in target["worst_items"]}
    rows = list_items(experiment).filter(position__in=positions)
    return {row.position: item_entry(row, sees_content=visit.sees_content) for row in rows}


def _target(
    visit: Visit, experiment: Experiment, target: TargetReport, entries: Mapping[int, Mapping[str, Any]]
) -> ShownTarget:
    labels = (experiment.baseline, target["label"])
    worst = [
        WorstPair(
            one["position"],
            signed(one["difference"]),
            (entries.get(one["position"]) or {}).get("preview") or "",
            [(title, score(pair["baseline"]), score(pair["target"])) for title, pair in one["scores"].items()],
            [(label, answer) for label in labels for answer in _answers(entries.get(one["position"]), label)],
        )
        for one in target["worst_items"]
    ]
    positions = ",".join(str(one.position) for one in worst)
    to_dataset = to_dataset_address(visit, experiment, positions) if worst else ""
    return ShownTarget(
        target,
        verdict_mark(target["verdict"]),
        [_row(one) for one in target["evaluators"]],
        worst,
        _gate_address(visit, experiment, target),
        to_dataset,
    )


def _answers(entry: Mapping[str, Any] | None, label: str) -> list[ExperimentAnswerEntry]:
    return [answer for answer in (entry or {}).get("answers", ()) if answer["label"] == label and answer["repeat"] == 1]


def _row(one: Mapping[str, Any]) -> Mapping[str, Any]:
    interval = NONE if one["low"] is None else f"{signed(one['low'])} to {signed(one['high'])}"
    return {
        "one": one,
        "asks": _asks(one),
        "baseline": score(one["baseline_mean"]),
        "target": score(one["target_mean"]),
        "difference": signed(one["difference"]),
        "interval": interval,
        "missing": [
            f"{_REASONS.get(part['reason'], part['reason'].replace('_', ' '))}: target {part['target']}, baseline"
            f" {part['baseline']}"
            for part in one["unscored"]
        ],
        "newly_failed": ", ".join(map(str, one["newly_failed"])),
    }


def _asks(one: Mapping[str, Any]) -> str:
    parts = ["required"] if one["required"] else []
    if one["min_rate"] is not None:
        parts.append(f"at least {100 * one['min_rate']:g} % good")
    elif one["must_pass"]:
        parts.append("must pass")
    return ", ".join(parts) or "shown only"


def score(value: float | None) -> str:
    return NONE if value is None else f"{value:.3g}"


def signed(value: float | None) -> str:
    return NONE if value is None else f"{value:+.3f}".replace("-", MINUS)


def _gate_address(visit: Visit, experiment: Experiment, target: TargetReport) -> str:
    if target["verdict"] != "passed" or experiment.dataset_id is None:
        return ""
    if experiment.state in UNFINISHED:
        return ""
    by_label = {candidate.label: candidate for candidate in candidates_of(experiment.candidates)}
    baseline, chosen = by_label.get(experiment.baseline), by_label.get(target["label"])
    if baseline is None or chosen is None or not _differ_in_version_alone(baseline, chosen):
        return ""
    config = PromptConfig.objects.for_project(visit.project.pk).filter(pk=chosen.prompt_config_id).first()
    if config is None or config.has_active_rollout or str(config.active_version_id) != baseline.version_id:
        return ""
    return visit.link_if_there(
        "rollout_form",
        config=config.pk,
        baseline=baseline.version_id,
        target=chosen.version_id,
        gate="experiment",
        gate_dataset=experiment.dataset_id,
    )


def _differ_in_version_alone(one: Candidate, other: Candidate) -> bool:
    if not one.version_id or not other.version_id or one.prompt_config_id != other.prompt_config_id:
        return False
    return (one.model, one.temperature, one.max_tokens) == (other.model, other.temperature, other.max_tokens)
