"""The form of a new rollout: which version, how, in which stages, and what that takes at today's traffic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase

from analytics.models import Dataset
from console.rollouts.forms import BaseStages, RolloutForm, stage_rows, stages_of_address
from core.errors import ApplicationError
from core.ui import formats
from core.ui.formats import UNKNOWN
from core.ui.pages import Page, Visit
from core.ui.panels import Panel
from core.ui.registry import register_page
from prompts.diff.contents import diff_contents
from prompts.models import PromptConfig, PromptVersion
from prompts.selectors import version_content
from rollouts.allocation import AllocationType
from rollouts.evaluation.words import in_words
from rollouts.forecasts.plan import plan_rollout
from rollouts.models import Gate, Rollout
from rollouts.selectors import latest_rollbacks
from rollouts.services import create_rollout, start_rollout
from rollouts.states import ACTIVE, DEFAULT_STAGES, Stage, StageError

MAX_DIFF_ROWS = 200


@dataclass(frozen=True, slots=True)
class Draft:
    """The values of the address or of the sent form so far; `problem` is the error of its stages."""

    config: PromptConfig
    target: PromptVersion | None
    allocation_type: AllocationType
    stages: Sequence[Stage]
    problem: str = ""


@register_page
class RolloutFormPage(Page):
    route = "rollouts/new/"
    name = "rollout_form"
    title = "New rollout"
    template = "rollouts/new.html"
    parent = "rollouts"
    methods = ("GET", "HEAD", "POST")

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
            made = _made(visit, form, rows.stages, start=action == "start")
            if made is not None:
                return HttpResponseRedirect(visit.link("rollouts_rollout_change", made.pk))
        draft = Draft(
            config,
            form.cleaned_data.get("target"),
            AllocationType(form.cleaned_data.get("allocation_type") or AllocationType.RANDOM.value),
            rows.stages or DEFAULT_STAGES,
            "" if rows.stages else "The stages have errors.",
        )
        panels = _panels(visit, draft) if _can_begin(config) else ()
        return self.render(visit, panels, **_shown(visit, form, rows))


def _made(visit: Visit, form: RolloutForm, stages: Sequence[Stage], *, start: bool) -> Rollout | None:
    """Returns the new rollout, or None with the refusal as an error of the form."""
    project_id, actor = form.config.project_id, visit.actor
    try:
        with transaction.atomic():
            row = create_rollout(project_id=project_id, new=form.new_rollout(stages), actor=actor)
            if start:
                row = start_rollout(project_id=project_id, rollout_id=row.pk, actor=actor)
    except ApplicationError as error:
        form.add_error(None, error.message)
        return None
    visit.note_change(row, "Made and started." if start else "Made.")
    messages.success(visit.request, f"Rollout {row.name} is {'running' if start else 'made; it is not started yet'}.")
    return row


def _shown(visit: Visit, form: RolloutForm, rows: BaseStages) -> Mapping[str, Any]:
    config = form.config
    return {
        "config": config,
        "form": form,
        "rows": rows,
        "baseline": config.active_version,
        "can_begin": _can_begin(config),
        "active": _active(visit, config),
        "editor_address": visit.link_if_there("prompt_editor", config.pk),
        "prompt_address": visit.link_if_there("prompt", config.pk),
        "online_evaluations_address": visit.link_if_there("online_evaluations"),
        "form_address": visit.link("rollout_form", config=config.pk),
    }


def _panels(visit: Visit, draft: Draft) -> list[Panel]:
    return [
        Panel("diff", "What changes", "rollouts/diff.html", lambda: _diff(visit, draft), is_wide=True),
        Panel("forecast", "Forecast", "rollouts/forecast.html", lambda: _forecast(draft), is_wide=True),
    ]


def _forecast(draft: Draft) -> Mapping[str, Any]:
    """Raises AnalyticsUnavailableError and AnalyticsLimitError."""
    if draft.problem:
        return {"problem": draft.problem}
    config = draft.config
    plan = plan_rollout(config.project_id, config.pk, draft.stages, draft.allocation_type)
    rows = [
        (one.stage, _in_words(one.begins_after), _in_words(one.minutes), _whole(one.target_requests))
        for one in plan.stages
    ]
    return {"plan": plan, "rows": rows}


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
    """Returns the gate and its data set that the address names, as a link from an experiment does."""
    if given.get("gate") not in Gate.values:
        return {}
    try:
        dataset_id = UUID(given.get("gate_dataset", ""))
    except ValueError:
        return {"gate": given["gate"]}
    found = Dataset.objects.for_project(config.project_id).filter(pk=dataset_id).first()
    return {"gate": given["gate"], "gate_dataset": found}


def _config(visit: Visit) -> PromptConfig | None:
    """Returns the prompt that the address names, or the only one that can be rolled out. Raises Http404 for one that is
    not in the project."""
    given = visit.request.GET.get("config", "")
    if not given:
        ready = [config for config in _configs(visit)[:2] if _can_begin(config)]
        return ready[0] if len(ready) == 1 else None
    try:
        config_id = UUID(given)
    except ValueError:
        raise Http404("There is no such prompt.") from None
    found = _all_configs(visit).filter(pk=config_id).first()
    if found is None:
        raise Http404("There is no such prompt.")
    return found


def _all_configs(visit: Visit) -> QuerySet[PromptConfig]:
    return PromptConfig.objects.for_project(visit.project.pk).select_related("active_version").order_by("name")


def _configs(visit: Visit) -> QuerySet[PromptConfig]:
    """Returns the prompts that can be rolled out now."""
    return _all_configs(visit).filter(last_version_number__gte=2, has_active_rollout=False)


def _can_begin(config: PromptConfig) -> bool:
    return not config.has_active_rollout and config.active_version_id is not None and config.last_version_number > 1


def _active(visit: Visit, config: PromptConfig) -> tuple[Rollout, str] | None:
    row = Rollout.objects.filter(config=config, status__in=[one.value for one in ACTIVE]).first()
    return None if row is None else (row, visit.link("rollouts_rollout_change", row.pk))


def _draft(config: PromptConfig, query: QueryDict) -> Draft:
    versions = (
        PromptVersion.objects.filter(config=config)
        .exclude(pk=config.active_version_id or config.pk)
        .order_by("-number")
    )
    target = _version(versions, query.get("target", "")) or versions.first()
    allocation = query.get("allocation", "")
    known = AllocationType(allocation) if allocation in set(AllocationType) else AllocationType.RANDOM
    try:
        return Draft(config, target, known, stages_of_address(query.get("stages", "")))
    except StageError as error:
        return Draft(config, target, known, DEFAULT_STAGES, str(error))


def _version(versions: QuerySet[PromptVersion], text: str) -> PromptVersion | None:
    try:
        return versions.filter(pk=UUID(text)).first()
    except ValueError:
        return None
