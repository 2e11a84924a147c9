from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.http.response import HttpResponseBase

from console.settings_form.base import SettingsFormPage
from console.settings_form.form import Difference, SectionForm, differences
from core.errors import ApplicationError
from core.ui.pages import Visit
from core.ui.panels import Panel
from core.ui.tables import newest_first
from gateway.models import GatewaySettings, SettingsChange
from gateway.project_settings.sections import SECTIONS
from gateway.services import restore_settings

HISTORY_ROWS = 20


class SettingsPage(SettingsFormPage):
    route = "settings/"
    name = "settings"
    title = "Settings"
    has_range = False
    sections = SECTIONS

    def shown(self, visit: Visit, form: SectionForm | None, row: GatewaySettings) -> dict[str, Any]:
        return {**super().shown(visit, form, row), "keeps_texts": row.settings.log_content}

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        template = "settings/history.html"
        return [Panel("history", "History", template, lambda: _history(visit), is_wide=True)]

    def post(self, visit: Visit, **route: Any) -> HttpResponseBase:
        change = visit.request.POST.get("restore", "")
        if not change.isdecimal():
            return super().post(visit, **route)
        try:
            restore_settings(project_id=visit.project.pk, change_id=int(change), actor=visit.actor)
        except ApplicationError as error:
            return visit.failed(error.message, visit.link(self.name))
        return visit.done("Restored: these settings are as they were before the change.", visit.link(self.name))


def _history(visit: Visit) -> Mapping[str, Any]:
    rows = SettingsChange.objects.for_project(visit.project.pk).order_by("-id")
    page, links = newest_first(rows, visit.request.GET, HISTORY_ROWS)
    return {"changes": [(row, _differences(row)) for row in page], **links}


def _differences(row: SettingsChange) -> list[Difference]:
    before, after = ({name: pair[place] for name, pair in row.changes.items()} for place in (0, 1))
    return differences(before, after)
