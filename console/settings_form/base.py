from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from django.http.response import HttpResponseBase

from console.settings_form.form import MAX_OFFERED_MODELS, MODELS, SectionForm, differences
from console.settings_form.warnings import shown_warnings
from core.roles import Right
from core.ui.pages import Page, Visit
from gateway.models import GatewaySettings
from gateway.playground.catalog import list_models
from gateway.project_settings.declaration import Section
from gateway.selectors import current_settings
from gateway.services import replace_settings


class SettingsFormPage(Page):
    """Changes the settings of `sections` in two steps: the page shows the differences before it saves. Only
    administrators get the form."""

    sections: ClassVar[Sequence[Section]]

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        row = current_settings(visit.project.pk)
        form = SectionForm(self.sections, row.settings, visit.project.pk) if visit.may(Right.ADMINISTER) else None
        return self.shown(visit, form, row)

    def shown(self, visit: Visit, form: SectionForm | None, row: GatewaySettings) -> dict[str, Any]:
        """`seen` identifies the state of the settings that the form was made from."""
        is_fresh = form is not None and not form.is_bound
        warnings = list(shown_warnings(visit, row, self.sections)) if is_fresh else []
        return {"form": form, "seen": _state_of(row), "warnings": warnings, "models": _offered_models(visit, form)}

    def post(self, visit: Visit, **route: Any) -> HttpResponseBase:
        visit.require(Right.ADMINISTER)
        row = current_settings(visit.project.pk)
        seen = _state_of(row)
        form = SectionForm(self.sections, row.settings, visit.project.pk, visit.request.POST)
        action = visit.request.POST.get("action", "review")
        if not form.is_valid() or action == "edit":
            return self.answer(visit, form, row, seen=seen)
        if action not in ("review", "save"):
            return self.act(visit, action, form, row, seen)
        found = differences(form.before, form.after)
        if action == "save" and visit.request.POST.get("seen") == seen:
            if found:
                replace_settings(project_id=visit.project.pk, values=form.values, actor=visit.actor)
            said = "Saved; every worker has it within a second." if found else "No change."
            return visit.done(said, visit.link(self.name))
        changed_meanwhile = action == "save"
        return self.answer(
            visit, form, row, seen=seen, differences=found, is_review=True, changed_meanwhile=changed_meanwhile
        )

    def act(self, visit: Visit, action: str, form: SectionForm, row: GatewaySettings, seen: str) -> HttpResponseBase:
        """Handles a further button of a valid form."""
        return self.answer(visit, form, row, seen=seen)

    def answer(self, visit: Visit, form: SectionForm, row: GatewaySettings, **more: Any) -> HttpResponseBase:
        return self.render(visit, self.panels(visit), **{**self.shown(visit, form, row), **more})


def _offered_models(visit: Visit, form: SectionForm | None) -> list[str]:
    if form is None or MODELS.isdisjoint(form.fields):
        return []
    return [model["model"] for model in list_models(visit.project.pk, "")[:MAX_OFFERED_MODELS]]


def _state_of(row: GatewaySettings) -> str:
    return row.updated_at.isoformat() if row.pk else ""
