from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.http.response import HttpResponseBase

from analytics.models import ListPage, SavedView
from analytics.parameters.values import parse_parameters
from analytics.saved_views import list_views
from console.experiments.forms import ExperimentForm, initial_of
from core.errors import ApplicationError
from core.ui.pages import Page, Visit
from core.ui.panels import Panel
from gateway.experiments.estimate import estimate
from gateway.experiments.plan import NewExperiment
from gateway.experiments.services import create_experiment
from gateway.experiments.start import call_worker
from gateway.playground.catalog import list_models
from gateway.selectors import project_settings
from prompts.models import PromptVersion

MAX_MODELS = 60


class ExperimentFormPage(Page):
    route = "experiments/new/"
    name = "experiment_form"
    title = "New experiment"
    parent = "experiments"

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        return _shown(visit, _begun(visit))

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        return [_estimate_panel(visit, _new_experiment(visit, _begun(visit, is_bound=True)))]

    def post(self, visit: Visit, **route: Any) -> HttpResponseBase:
        form = ExperimentForm(visit.project.pk, _views(visit), visit.request.POST)
        new = _new_experiment(visit, form)
        if new is not None and visit.request.POST.get("action") != "estimate":
            try:
                row = create_experiment(project_id=visit.project.pk, new=new, actor=visit.actor)
            except ApplicationError as error:
                form.refuse(error)
            else:
                call_worker()
                return visit.done(f"The experiment begins: {row.name}.", visit.link("experiment", row.pk))
        return self.render(visit, [_estimate_panel(visit, new)], **_shown(visit, form))


def _begun(visit: Visit, *, is_bound: bool = False) -> ExperimentForm:
    given = parse_parameters(visit.request.GET.urlencode())
    initial = initial_of(given, visit.request.GET, visit.project.pk, _config_of(visit))
    project_id, views = visit.project.pk, _views(visit)
    return (
        ExperimentForm(project_id, views, initial) if is_bound else ExperimentForm(project_id, views, initial=initial)
    )


def _views(visit: Visit) -> list[SavedView]:
    return list(list_views(visit.project.pk, visit.actor, ListPage.REQUESTS))


def _config_of(visit: Visit) -> str:
    query = visit.request.GET
    for text in (query.get("b", ""), query.get("a", ""), *query.getlist("version")):
        try:
            version_id = UUID(text)
        except ValueError:
            continue
        rows = PromptVersion.objects.filter(config__project=visit.project, pk=version_id)
        if (found := rows.values_list("config_id", flat=True).first()) is not None:
            return str(found)
    return ""


def _new_experiment(visit: Visit, form: ExperimentForm) -> NewExperiment | None:
    if not form.is_valid():
        return None
    return form.new_experiment(visit.period.start.isoformat(), visit.period.end.isoformat())


def _estimate_panel(visit: Visit, new: NewExperiment | None) -> Panel:
    template = "experiments/estimate.html"
    return Panel("estimate", "What it will cost", template, lambda: _estimate(visit, new), is_wide=True)


def _estimate(visit: Visit, new: NewExperiment | None) -> Mapping[str, Any]:
    is_same = new is not None and len(set(new.candidates)) < len(new.candidates)
    found = estimate(visit.project.pk, new) if new is not None and not is_same else None
    return {"estimate": found, "new": new, "is_same": is_same, "period": visit.period}


def _shown(visit: Visit, form: ExperimentForm) -> Mapping[str, Any]:
    return {
        "form": form,
        "period": visit.period,
        "judge_model": project_settings(visit.project.pk).judge_model,
        "models": [model["model"] for model in list_models(visit.project.pk, "")[:MAX_MODELS]],
        "form_address": visit.link("experiment_form"),
        "datasets_address": visit.link_if_there("datasets"),
        "evaluator_address": visit.link_if_there("evaluator_form"),
    }
