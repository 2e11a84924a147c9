"""The form of a definition with the dry run beside it, as the pages of a new and of a known evaluator show it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from analytics.models.evaluators import EVALUATOR_DESCRIPTION_CHARACTERS, EVALUATOR_NAME_CHARACTERS
from console.evaluators.kinds import KIND_TITLES, KindForm
from console.evaluators.trying import TryForm, can_be_tried, dry_run
from core.ui.pages import Visit
from gateway.playground.catalog import list_models

TRY = "try"
_MAX_MODELS = 60
_ASKS_A_CHAT_MODEL = ("judge", "pairwise")


class NameForm(forms.Form):
    name = forms.CharField(max_length=EVALUATOR_NAME_CHARACTERS, label="Name")
    description = forms.CharField(
        required=False,
        max_length=EVALUATOR_DESCRIPTION_CHARACTERS,
        label="Description",
        widget=forms.Textarea(attrs={"rows": 2}),
    )


def chosen_requests(visit: Visit) -> TryForm:
    """Returns the form of the dry run as it was sent or as the address fills it in."""
    if visit.request.method == "POST":
        return TryForm(visit.request.POST.dict())
    return TryForm(initial={"request_ids": visit.request.GET.get("request_id", "")})


def editor_context(visit: Visit, kind: str, form: KindForm) -> dict[str, Any]:
    """Returns what the template of the editor shows; the dry run is made where its button was pressed."""
    chosen, outcome = chosen_requests(visit), None
    if visit.request.method == "POST" and visit.request.POST.get("action") == TRY and can_be_tried(kind):
        outcome = dry_run(visit, kind, form, chosen)
    return {**_shown(visit, kind, form), "chosen": chosen if can_be_tried(kind) else None, "outcome": outcome}


def _shown(visit: Visit, kind: str, form: KindForm) -> Mapping[str, Any]:
    return {
        "kind": kind,
        "kind_title": KIND_TITLES[kind],
        "form": form,
        "models": _models(visit) if kind in _ASKS_A_CHAT_MODEL else (),
        "period": visit.period,
    }


def _models(visit: Visit) -> list[str]:
    return [model["model"] for model in list_models(visit.project.pk, "")[:_MAX_MODELS]]
