from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import QueryDict
from django.utils.html import format_html
from django.utils.safestring import SafeString

from core.ui.filters import FilterField, Filters
from core.ui.formats import NONE, moment
from core.ui.marks import status
from core.ui.pages import Page, Visit
from core.ui.panels import Panel
from core.ui.tables import Column, Empty, Table, newest_first, page_link
from prompts.models import PromptConfig
from rollouts.evaluation.words import first_sentence
from rollouts.models import Mode, Rollout
from rollouts.selectors import current_stage, list_rollouts
from rollouts.states import Status

PAGE_ROWS = 50

MODES: Mapping[str, str] = {Mode.AUTO.value: "automatic", Mode.MANUAL.value: "by hand"}
_FILTERS = ("status", "mode", "config_id")


class RolloutsPage(Page):
    route = "rollouts/"
    name = "rollouts"
    title = "Rollouts"

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        return {"filters": _filters(visit), "form_address": visit.link_if_there("rollout_form")}

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        return [Panel.of_table("rollouts", "Rollouts", lambda: _table(visit), is_wide=True, refresh_seconds=60)]


def _filters(visit: Visit) -> Filters:
    configs = PromptConfig.objects.for_project(visit.project.pk).order_by("name").values_list("pk", "name")
    statuses = [(one.value, one.value.replace("_", " ")) for one in Status]
    return Filters(
        fields=[
            FilterField("status", "Status", kind="choice", choices=statuses),
            FilterField("mode", "Mode", kind="choice", choices=list(MODES.items())),
            FilterField("config_id", "Prompt", kind="choice", choices=[(str(pk), name) for pk, name in configs]),
        ],
        query=visit.request.GET,
    )


def _table(visit: Visit) -> Table:
    query = visit.request.GET
    found = _filtered(list_rollouts(visit.project.pk), query)
    rows, links = newest_first(found, query, PAGE_ROWS, by="created_at")
    return Table(
        caption="Rollouts, the newest first",
        columns=_columns(visit),
        rows=rows,
        empty=_empty(visit),
        key=lambda row: visit.link("rollouts_rollout_change", row.pk),
        **links,
    )


def _filtered(rollouts: QuerySet[Rollout], query: QueryDict) -> QuerySet[Rollout]:
    try:
        return rollouts.filter(**{name: query[name] for name in _FILTERS if query.get(name)})
    except ValidationError:  # The prompt's id is none.
        return rollouts.none()


def _columns(visit: Visit) -> list[Column]:
    return [
        Column("name", "Name", lambda row: row.name),
        Column("prompt", "Prompt", lambda row: visit.linked(row.config.name, "prompt", row.config_id)),
        Column("versions", "Versions", lambda row: f"{row.baseline_version.number} to {row.target_version.number}"),
        Column("status", "Status", lambda row: status(row.status)),
        Column("stage", "Stage", _stage),
        Column("verdict", "Verdict", _verdict),
        Column(
            "mode", "Mode", lambda row: format_html('<span class="nowrap">{}</span>', MODES[row.mode]), gives_way=True
        ),
        Column("started", "Started", lambda row: moment(row.started_at) if row.started_at else "not yet"),
    ]


def _stage(row: Rollout) -> str:
    stage, count = current_stage(row), len(row.stages.all())
    return f"{stage.number} of {count}, {stage.weight} %" if stage else f"{count} to come"


def _verdict(row: Rollout) -> str | SafeString:
    if row.evaluation.decided_at is None:
        return NONE
    verdict = row.evaluation.verdict
    return format_html("{} {}", status(verdict.get("status", "")), first_sentence(verdict.get("explanation", "")))


def _empty(visit: Visit) -> Empty:
    if any(visit.request.GET.get(name) for name in _FILTERS):
        return Empty(
            "No rollout fits these filters.", page_link(visit.request.GET, **dict.fromkeys(_FILTERS, "")), "Clear"
        )
    link = visit.link_if_there("rollout_form")
    return Empty("No prompt of this project was rolled out yet.", link, "Roll one out" if link else "")
