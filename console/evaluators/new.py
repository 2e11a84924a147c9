from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http.response import HttpResponseBase

from analytics.evaluators.definitions import KINDS
from analytics.evaluators.services import NewVersion, create_evaluator
from console.evaluators.editor import NameForm, editor_context
from console.evaluators.kinds import KIND_TITLES, KindForm, kind_form
from core.errors import ApplicationError
from core.ui.forms import refuse as show_refusal
from core.ui.pages import Page, Visit


class EvaluatorFormPage(Page):
    route = "evaluators/new/"
    name = "evaluator_form"
    title = "New evaluator"
    parent = "evaluators"

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        kind = _kind(visit)
        return _shown(visit, kind, kind_form(kind), NameForm()) if kind else _choice(visit)

    def post(self, visit: Visit, **route: Any) -> HttpResponseBase:
        kind, given = _kind(visit), visit.request.POST.dict()
        if not kind:
            return self.render(visit, **_choice(visit))
        form, named = kind_form(kind, given), NameForm(given)
        if given.get("action") == "save" and all([form.is_valid(), named.is_valid()]):
            first = NewVersion(form.definition(), form.cleaned_data["good_from"])
            try:
                made = create_evaluator(
                    project_id=visit.project.pk, kind=kind, first=first, actor=visit.actor, **named.cleaned_data
                )
            except ApplicationError as error:
                refuse(error, form, named)
            else:
                href = visit.link("evaluator", made.pk, request_id=_request_id(visit))
                return visit.done(f"{made.name} is made. Nothing is scored by it yet.", href)
        return self.render(visit, **_shown(visit, kind, form, named))


def refuse(error: ApplicationError, form: KindForm, named: NameForm) -> None:
    if next(iter(error.details or {}), "") in named.fields:
        show_refusal(named, error)
    else:
        form.refuse(error)


def _choice(visit: Visit) -> dict[str, Any]:
    request_id = _request_id(visit)
    kinds = [
        {
            "title": title,
            "asks_a_model": KINDS[kind].asks_a_model,
            "address": visit.link("evaluator_form", kind=kind, request_id=request_id),
        }
        for kind, title in KIND_TITLES.items()
    ]
    return {"kinds": sorted(kinds, key=lambda one: bool(one["asks_a_model"]))}


def _shown(visit: Visit, kind: str, form: KindForm, named: NameForm) -> dict[str, Any]:
    request_id = _request_id(visit)
    return {
        **editor_context(visit, kind, form),
        "named": named,
        "editor_title": f"A good answer {KIND_TITLES[kind].lower()}",
        "save_label": "Make the evaluator",
        "form_address": visit.link("evaluator_form", kind=kind, request_id=request_id),
        "choice_address": visit.link("evaluator_form", request_id=request_id),
    }


def _kind(visit: Visit) -> str:
    kind = visit.request.GET.get("kind", "")
    return kind if kind in KIND_TITLES else ""


def _request_id(visit: Visit) -> str:
    return visit.request.GET.get("request_id", "")
