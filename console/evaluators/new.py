"""The page of a new evaluator: its kind is chosen first, then its form is filled in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpResponseRedirect
from django.http.response import HttpResponseBase

from analytics.evaluators.definitions import KINDS
from analytics.evaluators.services import NewVersion, create_evaluator
from analytics.models import Evaluator
from console.evaluators.editor import NameForm, editor_context
from console.evaluators.kinds import KIND_TITLES, KindForm, kind_form
from core.errors import ApplicationError
from core.ui.forms import refuse as show_refusal
from core.ui.pages import Page, Visit
from core.ui.registry import register_page


@register_page
class EvaluatorFormPage(Page):
    route = "evaluators/new/"
    name = "evaluator_form"
    title = "New evaluator"
    template = "evaluators/new.html"
    parent = "evaluators"
    methods = ("GET", "HEAD", "POST")

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        kind = _kind(visit)
        return _shown(visit, kind, kind_form(kind), NameForm()) if kind else _choice(visit)

    def post(self, visit: Visit, **route: Any) -> HttpResponseBase:
        kind, given = _kind(visit), visit.request.POST.dict()
        if not kind:
            return self.render(visit, **_choice(visit))
        form, named = kind_form(kind, given), NameForm(given)
        if given.get("action") == "save":
            made = _made(visit, kind, form, named)
            if made is not None:
                messages.success(visit.request, f"{made.name} is made. Nothing is scored by it yet.")
                return HttpResponseRedirect(visit.link("evaluator", made.pk, request_id=_request_id(visit)))
        return self.render(visit, **_shown(visit, kind, form, named))


def _made(visit: Visit, kind: str, form: KindForm, named: NameForm) -> Evaluator | None:
    """Returns the new evaluator, or None with the faults as errors of the forms."""
    if not all([form.is_valid(), named.is_valid()]):
        return None
    try:
        return create_evaluator(
            project_id=visit.project.pk,
            name=named.cleaned_data["name"],
            kind=kind,
            description=named.cleaned_data["description"],
            first=NewVersion(form.definition(), form.cleaned_data["good_from"]),
            actor=visit.actor,
        )
    except ApplicationError as error:
        refuse(error, form, named)
        return None


def refuse(error: ApplicationError, form: KindForm, named: NameForm) -> None:
    """Shows an error of the API at the field of one of the forms."""
    if next(iter(error.details or {}), "") in named.fields:
        show_refusal(named, error)
    else:
        form.refuse(error)


def _choice(visit: Visit) -> dict[str, Any]:
    """Returns the kinds to choose from, those that ask no model first."""
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
