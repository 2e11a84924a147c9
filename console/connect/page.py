from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from django.http import Http404
from django.http.response import HttpResponseBase

from console.connect.box import steps_box, waiting_box
from console.connect.forms import ApplicationKeyForm
from console.connect.models import problem_with
from console.connect.steps import looked_up_steps
from core.keys.services import issue_key
from core.models import ApiKey
from core.rights.scopes import GATEWAY
from core.roles import Right
from core.ui.pages import Page, Visit
from core.ui.panels import Panel
from gateway.playground.catalog import list_models
from prompts.models import MODEL_CHARACTERS

# A browser shows no more suggestions of a list than one can read.
_MAX_SUGGESTED = 300
_MAX_ID_CHARACTERS = 18


class ConnectPage(Page):
    route = "connect/"
    name = "connect"
    title = "Connect an application"
    has_range = False

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        return _shown(visit)

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        load = partial(looked_up_steps, visit, _named_key(visit))
        return [Panel("steps", "Steps", "connect/steps.html", load)]

    def post(self, visit: Visit, **route: Any) -> HttpResponseBase:
        visit.require(Right.ADMINISTER)
        form = ApplicationKeyForm(visit.request.POST)
        if not form.is_valid():
            return self.render(visit, self.panels(visit), **_shown(visit, form))
        row, secret = issue_key(visit.project, name=form.cleaned_data["name"], scopes=[GATEWAY])
        # The key is in this one response and nowhere else, so that it cannot be shown after a redirect.
        model, problem = _model(visit)
        return self.render(visit, box=waiting_box(visit, key=row, secret=secret, model="" if problem else model))


def _shown(visit: Visit, form: ApplicationKeyForm | None = None) -> dict[str, Any]:
    model, problem = _model(visit)
    return {
        "box": steps_box(visit, model="" if problem else model, form=form),
        "problem": problem,
        "given": model,
        "models": [offered["model"] for offered in list_models(visit.project.pk, "")[:_MAX_SUGGESTED]],
    }


def _model(visit: Visit) -> tuple[str, str]:
    given = (visit.request.POST.get("model") or visit.request.GET.get("model", "")).strip()[:MODEL_CHARACTERS]
    return given, problem_with(visit.project.pk, given) if given else ""


def _named_key(visit: Visit) -> ApiKey | None:
    given = visit.request.GET.get("key", "")
    if not given:
        return None
    is_id = given.isascii() and given.isdecimal() and len(given) <= _MAX_ID_CHARACTERS
    row = ApiKey.objects.for_project(visit.project.pk).filter(pk=int(given)).first() if is_id else None
    if row is None:
        raise Http404("The project has no such key.")
    return row
