from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.http import Http404
from django.http.response import HttpResponseBase

from analytics.models import ChartKind
from analytics.models.dashboards import CHART_TITLE_CHARACTERS
from analytics.parameters.ranges import TimeRange
from console.dashboards.keeping import keep_address
from console.prompts.figures import (
    USE_FIGURES,
    bad_ratings_of_versions,
    figures_of_versions,
    rated_bad,
    scores_of_versions,
)
from console.prompts.labels import change_label, labels_context
from console.prompts.list import use_columns
from console.prompts.use import use_context
from console.prompts.versions import activations_table, versions_table
from core.roles import Right
from core.ui.edit import EditPage
from core.ui.formats import NONE, number
from core.ui.pages import Visit
from core.ui.panels import Panel
from core.ui.tables import Column, Empty, Table
from integrations.providers.usage import estimated_tokens
from prompts.diff.contents import diff_contents
from prompts.models import REASON_CHARACTERS, PromptConfig, PromptVersion
from prompts.selectors import list_versions, version_content
from prompts.services import activate_version, delete_config, undo_activation
from rollouts.models import Rollout
from rollouts.states import ACTIVE

MAX_VERSIONS = 100
_REQUESTS = "analytics_requests_changelist"


class PromptPage(EditPage[PromptConfig, Any]):
    route = "prompts/<uuid:config_id>/"
    name = "prompt"
    title = "Prompt"
    parent = "prompts"
    model = PromptConfig
    right = Right.EDIT
    saves = ()

    def record(self, visit: Visit, **route: Any) -> PromptConfig:
        return config_of(visit, route["config_id"])

    def shown(self, visit: Visit, record: PromptConfig, form: None) -> Mapping[str, Any]:
        versions = list(list_versions(visit.project.pk, record.pk)[:MAX_VERSIONS])
        shown = version_named(record, visit.request.GET.get("version", "")) or record.active_version
        against = version_named(record, visit.request.GET.get("against", ""))
        return {
            "title": record.name,
            "config": record,
            "versions": versions,
            "shown": shown,
            **(_version_in_full(shown) if shown else {}),
            **_differences(against, shown),
            "compared": shown if against else _newest_other(record, versions),
            "table": versions_table(visit, record, versions),
            "activations": activations_table(visit, record),
            "rollout": _running(visit, record),
            **labels_context(visit, record),
            **use_context(visit, record, shown, versions),
            **_links(visit, record, shown),
        }

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        config = self.record(visit, **route)
        title = "Use and scores by version"
        return [Panel.of_table("use", title, lambda: _use(visit, config), is_wide=True)]

    def do_delete(self, visit: Visit, record: PromptConfig) -> HttpResponseBase:
        delete_config(project_id=record.project_id, config_id=record.pk, actor=visit.actor)
        said = f"{record.name} is deleted, with its versions and their history."
        return visit.done(said, visit.link("prompts"))

    def do_label(self, visit: Visit, record: PromptConfig) -> HttpResponseBase:
        return self._noted(visit, record, change_label(visit, record, visit.actor))

    do_remove_label = do_label

    def do_undo(self, visit: Visit, record: PromptConfig) -> HttpResponseBase:
        made = undo_activation(**_named(visit, record))
        return self._noted(visit, record, f"Went back to version {made.to_version.number}.")

    def do_activate(self, visit: Visit, record: PromptConfig) -> HttpResponseBase:
        version = version_named(record, visit.request.POST.get("version", ""))
        if version is None:
            raise Http404("There is no such version.")
        activate_version(**_named(visit, record), version_id=version.pk)
        return self._noted(visit, record, f"Activated version {version.number}.")

    def _noted(self, visit: Visit, record: PromptConfig, done: str) -> HttpResponseBase:
        visit.note_change(record, done)
        return visit.done(f"{done} Gateways follow within a second.", self.address(visit, record))


def _named(visit: Visit, config: PromptConfig) -> dict[str, Any]:
    reason = visit.request.POST.get("reason", "")[:REASON_CHARACTERS]
    return {"project_id": config.project_id, "config_id": config.pk, "actor": visit.actor, "reason": reason}


def config_of(visit: Visit, config_id: UUID) -> PromptConfig:
    """Raises Http404 if the visit's project does not have the prompt."""
    configs = PromptConfig.objects.for_project(visit.project.pk).select_related("active_version")
    config = configs.filter(pk=config_id).first()
    if config is None:
        raise Http404("There is no such prompt.")
    return config


def pretty(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) if value else ""


def version_named(config: PromptConfig, given: str) -> PromptVersion | None:
    versions = PromptVersion.objects.filter(config=config)
    if given.isdecimal() and len(given) < 10:
        return versions.filter(number=int(given)).first()
    try:
        return versions.filter(pk=UUID(given)).first() if given else None
    except ValueError:
        return None


def _newest_other(config: PromptConfig, versions: Sequence[PromptVersion]) -> PromptVersion | None:
    return next((version for version in versions if version.pk != config.active_version_id), None)


def _version_in_full(version: PromptVersion) -> Mapping[str, Any]:
    size = sum(len(text.encode()) for _, text in version_content(version).texts)
    return {
        "tokens": estimated_tokens(size),
        "tools": pretty(version.tools),
        "response_format": pretty(version.response_format),
    }


def _differences(before: PromptVersion | None, after: PromptVersion | None) -> Mapping[str, Any]:
    if before is None or after is None or before.pk == after.pk:
        return {"against": None}
    return {"against": before, "diff": shown_diff(before, after)}


def shown_diff(before: PromptVersion, after: PromptVersion) -> Mapping[str, Any]:
    diff = diff_contents(version_content(before), version_content(after))
    return {"sections": diff.sections, "changes": [*diff.parameters, *diff.variables, *diff.tools]}


def _links(visit: Visit, config: PromptConfig, shown: PromptVersion | None) -> Mapping[str, Any]:
    active = config.active_version
    is_other = shown is not None and active is not None and shown.pk != active.pk
    return {
        "is_active": shown is not None and not is_other,
        "edit_address": visit.link_if_there("prompt_editor", config.pk, version=shown.number if shown else None),
        "compare_address": visit.link("prompt", config.pk, version=shown.number, against=active.number)
        if shown is not None and active is not None and is_other
        else "",
        "try_address": visit.link_if_there(
            "experiment_form", a=active.pk if active else None, b=shown.pk if shown is not None and is_other else None
        ),
        "roll_out_address": visit.link_if_there("rollout_form", config=config.pk, target=shown.pk)
        if shown is not None and is_other and not config.has_active_rollout
        else "",
        "requests_address": visit.link_if_there(
            _REQUESTS, prompt_config_id=config.pk, prompt_version=shown.number if shown else None
        ),
    }


def _running(visit: Visit, config: PromptConfig) -> Mapping[str, Any] | None:
    row = Rollout.objects.filter(config=config, status__in=[state.value for state in ACTIVE]).first()
    return {"row": row, "href": visit.link_if_there("rollouts_rollout_change", row.pk)} if row else None


def _use(visit: Visit, config: PromptConfig) -> Table:
    time_range = TimeRange(visit.period.start, visit.period.end)
    figures = figures_of_versions(visit.project.pk, config.pk, time_range)
    scores = scores_of_versions(visit.project.pk, time_range)
    bad = bad_ratings_of_versions(visit.project.pk, config.pk, time_range)

    def requests(version: int) -> Any:
        shown = number(figures[version]["request_count"])
        return visit.linked(shown, _REQUESTS, prompt_config_id=config.pk, prompt_version=version)

    return Table(
        caption=f"Use by version, {visit.period.label.lower()}",
        columns=[
            Column("version", "Version", lambda version: f"Version {version}"),
            Column("requests", "Requests", requests, is_numeric=True),
            *use_columns(lambda version: figures[version], lambda version: scores.get((config.pk, version), ())),
            Column("bad", "Rated bad in a day", lambda version: rated_bad(bad.get(version)) or NONE),
        ],
        rows=sorted(figures, reverse=True),
        empty=Empty("No request was served this prompt in this range."),
        key=lambda version: visit.link("prompt", config.pk, version=version),
        keep=keep_address(
            visit,
            f"Use of {config.name}"[:CHART_TITLE_CHARACTERS],
            ChartKind.TABLE,
            USE_FIGURES,
            group_by="prompt_version",
            filters={"prompt_config_id": str(config.pk)},
        ),
    )
