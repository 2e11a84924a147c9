"""The page of one prompt: a version in full, what changed, use by version, and who activated which when."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.utils.html import format_html

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
from core.errors import ApplicationError
from core.roles import Right
from core.ui.formats import NONE, number
from core.ui.pages import Page, Visit
from core.ui.panels import Panel
from core.ui.registry import register_page
from core.ui.tables import Column, Empty, Table
from integrations.providers.usage import estimated_tokens
from prompts.diff.contents import diff_contents
from prompts.models import REASON_CHARACTERS, PromptConfig, PromptVersion
from prompts.selectors import list_versions, version_content
from prompts.services import activate_version, delete_config, undo_activation
from rollouts.models import Rollout
from rollouts.states import ACTIVE

MAX_VERSIONS = 100


class RecordOfPrompt(Page):
    """A page below a prompt's address."""

    parent = "prompts"

    def project_id(self, **route: Any) -> UUID | None:
        found = PromptConfig.objects.filter(pk=route["config_id"]).values_list("project_id", flat=True).first()
        if found is None:
            raise Http404("There is no such prompt.")
        return found


@register_page
class PromptPage(RecordOfPrompt):
    route = "prompts/<uuid:config_id>/"
    name = "prompt"
    title = "Prompt"
    template = "prompts/prompt.html"
    methods = ("GET", "HEAD", "POST")

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        config = config_of(visit, route["config_id"])
        versions = list(list_versions(visit.project.pk, config.pk)[:MAX_VERSIONS])
        shown = version_named(config, visit.request.GET.get("version", "")) or config.active_version
        against = version_named(config, visit.request.GET.get("against", ""))
        return {
            "title": config.name,
            "config": config,
            "versions": versions,
            "shown": shown,
            **(_version_in_full(shown) if shown else {}),
            **_differences(against, shown),
            "compared": shown if against else _newest_other(config, versions),
            "table": versions_table(visit, config, versions),
            "activations": activations_table(visit, config),
            "rollout": _running(visit, config),
            **labels_context(visit, config),
            "may_edit": visit.may(Right.EDIT),
            **use_context(visit, config, shown, versions),
            **_links(visit, config, shown),
        }

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        config = config_of(visit, route["config_id"])
        title = "Use and scores by version"
        return [Panel.of_table("use", title, lambda: _use(visit, config), is_wide=True)]

    def post(self, visit: Visit, **route: Any) -> HttpResponseBase:
        visit.require(Right.EDIT)
        config = config_of(visit, route["config_id"])
        given = visit.request.POST
        reason = given.get("reason", "")[:REASON_CHARACTERS]
        if given.get("action") == "delete":
            return _deleted(visit, config)
        try:
            done = _done(visit, config, given.get("action", ""), reason)
        except ApplicationError as error:
            messages.error(visit.request, error.message)
        else:
            visit.note_change(config, done)
            messages.success(visit.request, f"{done} Gateways follow within a second.")
        return HttpResponseRedirect(visit.link("prompt", config.pk))


def _deleted(visit: Visit, config: PromptConfig) -> HttpResponseBase:
    try:
        delete_config(project_id=config.project_id, config_id=config.pk, actor=visit.actor)
    except ApplicationError as error:
        messages.error(visit.request, error.message)
        return HttpResponseRedirect(visit.link("prompt", config.pk))
    messages.success(visit.request, f"{config.name} is deleted, with its versions and their history.")
    return HttpResponseRedirect(visit.link("prompts"))


def config_of(visit: Visit, config_id: UUID) -> PromptConfig:
    """Returns a prompt of the visit's project. Raises Http404."""
    configs = PromptConfig.objects.for_project(visit.project.pk).select_related("active_version")
    config = configs.filter(pk=config_id).first()
    if config is None:
        raise Http404("There is no such prompt.")
    return config


def pretty(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) if value else ""


def version_named(config: PromptConfig, given: str) -> PromptVersion | None:
    """Returns the version of this number, or id; None for none."""
    versions = PromptVersion.objects.filter(config=config)
    if given.isdecimal() and len(given) < 10:
        return versions.filter(number=int(given)).first()
    try:
        return versions.filter(pk=UUID(given)).first() if given else None
    except ValueError:
        return None


def _newest_other(config: PromptConfig, versions: Sequence[PromptVersion]) -> PromptVersion | None:
    """Returns the newest version that is not active, with which the active one is compared first."""
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
            "analytics_requests_changelist", prompt_config_id=config.pk, prompt_version=shown.number if shown else None
        ),
    }


def _running(visit: Visit, config: PromptConfig) -> Mapping[str, Any] | None:
    row = Rollout.objects.filter(config=config, status__in=[state.value for state in ACTIVE]).first()
    return {"row": row, "href": visit.link_if_there("rollouts_rollout_change", row.pk)} if row else None


def _use(visit: Visit, config: PromptConfig) -> Table:
    """Raises AnalyticsUnavailableError."""
    time_range = TimeRange(visit.period.start, visit.period.end)
    figures = figures_of_versions(visit.project.pk, config.pk, time_range)
    scores = scores_of_versions(visit.project.pk, time_range)
    bad = bad_ratings_of_versions(visit.project.pk, config.pk, time_range)

    def requests(version: int) -> Any:
        href = visit.link_if_there("analytics_requests_changelist", prompt_config_id=config.pk, prompt_version=version)
        shown = number(figures[version]["request_count"])
        return format_html('<a href="{}">{}</a>', href, shown) if href else shown

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


def _done(visit: Visit, config: PromptConfig, action: str, reason: str) -> str:
    if action in ("label", "remove_label"):
        return change_label(visit, config, visit.actor)
    return _undo(visit, config, reason) if action == "undo" else _activate(visit, config, reason)


def _activate(visit: Visit, config: PromptConfig, reason: str) -> str:
    version = version_named(config, visit.request.POST.get("version", ""))
    if version is None:
        raise Http404("There is no such version.")
    activate_version(
        project_id=config.project_id,
        config_id=config.pk,
        version_id=version.pk,
        actor=visit.actor,
        reason=reason,
    )
    return f"Activated version {version.number}."


def _undo(visit: Visit, config: PromptConfig, reason: str) -> str:
    made = undo_activation(project_id=config.project_id, config_id=config.pk, actor=visit.actor, reason=reason)
    return f"Went back to version {made.to_version.number}."
