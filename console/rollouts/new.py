from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from django.db import transaction
from django.db.models import Model, Q, QuerySet
from django.http import Http404, QueryDict
from django.http.response import HttpResponseBase
from django.utils.safestring import SafeString

from analytics.models import Dataset
from analytics.online_evaluations.matched import matched_evaluators
from console.rollouts.forms import (
    WAYS,
    BaseStages,
    RolloutForm,
    address_of_stages,
    possible_targets,
    stage_rows,
    stages_of_address,
)
from console.rollouts.scores import trust
from core.errors import ApplicationError
from core.lookup.registry import as_uuid
from core.ui import formats
from core.ui.formats import UNKNOWN
from core.ui.pages import Page, Visit
from core.ui.panels import Panel
from core.ui.plots.markup import element
from prompts.diff.contents import diff_contents
from prompts.models import PromptConfig, PromptVersion
from prompts.selectors import version_content
from rollouts.allocation import AllocationType
from rollouts.evaluation.words import in_words
from rollouts.forecasts.plan import plan_rollout
from rollouts.models import Gate, Rollout
from rollouts.quality.defaults import with_thresholds
from rollouts.quality.start import standing_evaluators
from rollouts.quality.warnings import warnings_of
from rollouts.selectors import latest_rollbacks
from rollouts.services import create_rollout, start_rollout
from rollouts.states import ACTIVE, DEFAULT_STAGES, Stage, StageError
from rollouts.verdicts.policies import policy_from

MAX_DIFF_ROWS = 200

Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True, slots=True)
class Draft:
    config: PromptConfig
    target: PromptVersion | None
    allocation_type: AllocationType
    stages: Sequence[Stage]
    problem: str = ""
    policy: Mapping[str, Any] = field(default_factory=dict)


class RolloutFormPage(Page):
    route = "rollouts/new/"
    name = "rollout_form"
    title = "New rollout"
    parent = "rollouts"

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        config = _config(visit)
        if config is None:
            return {"configs": _configs(visit), "prompts_address": visit.link_if_there("prompts")}
        draft = _draft(config, visit.request.GET)
        initial = {
            "target": draft.target,
            "allocation_type": draft.allocation_type.value,
            **_gate(config, visit.request.GET),
        }
        return _shown(visit, RolloutForm(config, initial=initial), stage_rows(draft.stages))

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        config = _config(visit)
        if config is None or not _can_begin(config):
            return ()
        return _panels(visit, _draft(config, visit.request.GET))

    def post(self, visit: Visit, **route: Any) -> HttpResponseBase:
        config = _config(visit)
        if config is None:
            raise Http404("There is no such prompt.")
        given = visit.request.POST
        form, rows = RolloutForm(config, given), stage_rows(data=given)
        is_valid = all([form.is_valid(), rows.is_valid()])
        action = given.get("action")
        if is_valid and action != "forecast":
            try:
                return _made(visit, form, rows.stages, start=action == "start")
            except ApplicationError as error:
                form.add_error(None, error.message)
        draft = Draft(
            config,
            form.cleaned_data.get("target"),
            AllocationType(form.cleaned_data.get("allocation_type") or AllocationType.RANDOM.value),
            rows.stages or DEFAULT_STAGES,
            "" if rows.stages else "The stages have errors.",
            {} if form.errors else form.policy(),
        )
        panels = _panels(visit, draft) if _can_begin(config) else ()
        return self.render(visit, panels, **_shown(visit, form, rows))


def _made(visit: Visit, form: RolloutForm, stages: Sequence[Stage], *, start: bool) -> HttpResponseBase:
    project_id, actor = form.config.project_id, visit.actor
    with transaction.atomic():
        row = create_rollout(project_id=project_id, new=form.new_rollout(stages), actor=actor)
        if start:
            row = start_rollout(project_id=project_id, rollout_id=row.pk, actor=actor)
    visit.note_change(row, "Made and started." if start else "Made.")
    said = f"Rollout {row.name} is {'running' if start else 'made; it is not started yet'}."
    return visit.done(" ".join([said, *warnings_of(row)]), visit.link("rollouts_rollout_change", row.pk))


def _shown(visit: Visit, form: RolloutForm, rows: BaseStages) -> Mapping[str, Any]:
    config = form.config
    return {
        "config": config,
        "form": form,
        "rows": rows,
        "ways": _ways(visit, form, rows),
        "rows_about": _about([Stage(**one) for one in rows.initial or () if one]) if not rows.is_bound else "",
        "rules_are_open": any(field.errors for field in [*form.metric_fields, form["cost_allowance"]]),
        "baseline": config.active_version,
        "can_begin": _can_begin(config),
        "active": _active(visit, config),
        "editor_address": visit.link_if_there("prompt_editor", config.pk),
        "prompt_address": visit.link_if_there("prompt", config.pk),
        "online_evaluations_address": visit.link_if_there("online_evaluations"),
        "form_address": visit.link("rollout_form", config=config.pk),
    }


@dataclass(frozen=True, slots=True)
class Way:
    name: str
    sentence: str
    about: str
    stages: str
    href: str
    is_current: bool
    drawing: SafeString


def _ways(visit: Visit, form: RolloutForm, rows: BaseStages) -> list[Way]:
    chosen = rows.stages or tuple(Stage(**one) for one in rows.initial or () if one)
    target = form["target"].value()
    kept = {"config": form.config.pk, "target": getattr(target, "pk", target)}
    ways = []
    for name, sentence, stages in WAYS:
        written = address_of_stages(stages)
        href = visit.link("rollout_form", **kept, stages=written)
        ways.append(Way(name, sentence, _about(stages), written, href, stages == chosen, _staircase(stages)))
    return ways


def _about(stages: Sequence[Stage]) -> str:
    minutes = sum(stage.min_duration_minutes for stage in stages)
    return f"{len(stages)} stages, {stages[0].weight} % first, at least {in_words(minutes)}" if stages else ""


def _staircase(stages: Sequence[Stage]) -> SafeString:
    step = 100 / len(stages)
    points = [f"H{step * place:g} V{40 - 0.38 * stage.weight:g}" for place, stage in enumerate(stages)]
    path = f"M0 40 {' '.join(points)} H100"
    drawn = element("path", d=path)
    return element(
        "svg", drawn, class_="staircase", viewBox="0 0 100 42", preserveAspectRatio="none", aria_hidden="true"
    )


def _panels(visit: Visit, draft: Draft) -> list[Panel]:
    config = draft.config
    judges = Panel(
        "judges", "What each evaluator may decide", "rollouts/judges.html", lambda: _judges(config), is_wide=True
    )
    return [
        Panel("diff", "What changes", "rollouts/diff.html", lambda: _diff(visit, draft), is_wide=True),
        Panel("forecast", "Forecast", "rollouts/forecast.html", lambda: _forecast(draft), is_wide=True),
        *([judges] if matched_evaluators(config.project_id) else []),
    ]


def _forecast(draft: Draft) -> Mapping[str, Any]:
    if draft.problem:
        return {"problem": draft.problem}
    config = draft.config
    policy = policy_from(with_thresholds(config.project_id, draft.policy))
    plan = plan_rollout(config.project_id, config.pk, draft.stages, draft.allocation_type, policy)
    rows = [
        (one.stage, _in_words(one.begins_after_minutes), _in_words(one.minutes), _whole(one.target_requests))
        for one in plan.stages
    ]
    return {"plan": plan, "rows": rows}


def _judges(config: PromptConfig) -> Mapping[str, Any]:
    """Raises the errors of the request log."""
    return {"rows": [(one.title, trust(one)) for one in standing_evaluators(config.project_id, config.pk)]}


def _in_words(minutes: float | None) -> str:
    return UNKNOWN if minutes is None else (in_words(minutes) if minutes else "at once")


def _whole(number: float | None) -> str:
    return UNKNOWN if number is None else formats.number(round(number))


def _diff(visit: Visit, draft: Draft) -> Mapping[str, Any]:
    baseline, target = draft.config.active_version, draft.target
    if baseline is None or target is None:
        return {}
    diff = diff_contents(version_content(baseline), version_content(target))
    changed = [row for row in diff.rows if row.kind != "equal"]
    rolled_back = latest_rollbacks(draft.config).get(target.pk)
    return {
        "baseline": baseline,
        "target": target,
        "rows": changed[:MAX_DIFF_ROWS],
        "more_rows": max(0, len(changed) - MAX_DIFF_ROWS),
        "changes": [*diff.parameters, *diff.variables, *diff.tools],
        "whole": visit.link_if_there("prompt", draft.config.pk, version=target.number, against=baseline.number),
        "rolled_back": rolled_back,
        "rollout_address": visit.link("rollouts_rollout_change", rolled_back.rollout_id) if rolled_back else "",
    }


def _gate(config: PromptConfig, given: QueryDict) -> dict[str, Any]:
    if given.get("gate") not in Gate.values:
        return {}
    datasets = Dataset.objects.for_project(config.project_id)
    return {"gate": given["gate"], "gate_dataset": _named(datasets, given.get("gate_dataset", ""))}


def _config(visit: Visit) -> PromptConfig | None:
    given = visit.request.GET.get("config", "")
    if not given:
        ready = [config for config in _configs(visit)[:2] if _can_begin(config)]
        return ready[0] if len(ready) == 1 else None
    found = _named(_all_configs(visit), given)
    if found is None:
        raise Http404("There is no such prompt.")
    return found


def _all_configs(visit: Visit) -> QuerySet[PromptConfig]:
    return PromptConfig.objects.for_project(visit.project.pk).select_related("active_version").order_by("name")


def _configs(visit: Visit) -> QuerySet[PromptConfig]:
    return _all_configs(visit).filter(last_version_number__gte=2, has_active_rollout=False)


def _can_begin(config: PromptConfig) -> bool:
    return not config.has_active_rollout and config.active_version_id is not None and config.last_version_number > 1


def _active(visit: Visit, config: PromptConfig) -> tuple[Rollout, str] | None:
    row = Rollout.objects.filter(config=config, status__in=[one.value for one in ACTIVE]).first()
    return None if row is None else (row, visit.link("rollouts_rollout_change", row.pk))


def _draft(config: PromptConfig, query: QueryDict) -> Draft:
    versions = possible_targets(config)
    target = _named(versions, query.get("target", "")) or versions.first()
    allocation = query.get("allocation", "")
    known = AllocationType(allocation) if allocation in set(AllocationType) else AllocationType.RANDOM
    try:
        return Draft(config, target, known, stages_of_address(query.get("stages", "")))
    except StageError as error:
        return Draft(config, target, known, DEFAULT_STAGES, str(error))


def _named(rows: QuerySet[Row], text: str) -> Row | None:
    identity = as_uuid(text)
    return rows.filter(Q(pk=identity)).first() if identity else None
