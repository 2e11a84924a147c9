from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.utils.html import format_html

from analytics.models import ChartKind
from analytics.parameters.ranges import TimeRange
from console.dashboards.keeping import keep_address
from console.prompts.figures import USE_FIGURES, Figures, MeanScore, figures_of_configs, in_words, scores_of_configs
from core.ui.formats import NONE, duration, moment, money, number, share
from core.ui.marks import status
from core.ui.pages import Page, Visit
from core.ui.panels import Panel
from core.ui.tables import Column, Empty, Table
from prompts.models import PromptConfig
from prompts.selectors import list_configs
from rollouts.models import Rollout
from rollouts.selectors import current_stage
from rollouts.states import ACTIVE

MAX_CONFIGS = 500


class PromptsPage(Page):
    route = "prompts/"
    name = "prompts"
    title = "Prompts"

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        query = visit.request.GET.get("q", "")
        configs = list_configs(visit.project.pk)
        rows = list((configs.filter(name__icontains=query) if query else configs)[:MAX_CONFIGS])
        return {"table": _table(visit, rows, query), "q": query, "new_address": visit.link_if_there("prompt_new")}

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        return [Panel.of_table("use", "Use in this range", lambda: _use(visit), is_wide=True)]


def _table(visit: Visit, rows: Sequence[PromptConfig], query: str) -> Table:
    rollouts = {row.config_id: row for row in _running(visit.project.pk)}

    def rollout(config: PromptConfig) -> Any:
        row = rollouts.get(config.pk)
        if row is None:
            return NONE
        stage = current_stage(row)
        state = format_html("{} {}", status(row.status), f"{stage.weight} %" if stage else "")
        href = visit.link_if_there("rollouts_rollout_change", row.pk)
        return format_html('<a href="{}">{}</a> {}', href, row.name, state) if href else state

    return Table(
        caption="Prompts by name",
        columns=[
            Column("name", "Name", lambda row: row.name),
            Column("description", "Description", lambda row: row.description[:120] or NONE),
            Column("active", "Active version", lambda row: _active(visit, row)),
            Column("versions", "Versions", lambda row: number(row.version_count), is_numeric=True),
            Column("rollout", "Rollout", rollout),
            Column("changed", "Last change", lambda row: moment(row.updated_at)),
        ],
        rows=rows,
        empty=_empty(visit, query),
        query=visit.request.GET,
        key=lambda row: visit.link("prompt", row.pk),
    )


def _empty(visit: Visit, query: str) -> Empty:
    if query:
        return Empty(f"No prompt has {query!r} in its name.", visit.link("prompts"), "Show all")
    link = visit.link_if_there("prompt_new")
    text = "This project has no prompt yet. A prompt is a system prompt with versions that requests name."
    return Empty(text, link, "Write the first prompt" if link else "")


def _active(visit: Visit, config: PromptConfig) -> Any:
    active = config.active_version
    return visit.linked(active.number, "prompt", config.pk, version=active.number) if active else "none yet"


def _running(project_id: UUID) -> Sequence[Rollout]:
    active = [state.value for state in ACTIVE]
    return list(Rollout.objects.for_project(project_id).filter(status__in=active).prefetch_related("stages"))


def _use(visit: Visit) -> Table:
    time_range = TimeRange(visit.period.start, visit.period.end)
    figures = figures_of_configs(visit.project.pk, time_range)
    scores = scores_of_configs(visit.project.pk, time_range)
    names = dict(PromptConfig.objects.for_project(visit.project.pk).values_list("pk", "name"))
    rows = [(config_id, row) for config_id, row in figures.items() if config_id in names]

    def requests(row: tuple[UUID, Figures]) -> Any:
        return visit.linked(number(row[1]["request_count"]), "analytics_requests_changelist", prompt_config_id=row[0])

    return Table(
        caption=f"Use, {visit.period.label.lower()}",
        columns=[
            Column("name", "Name", lambda row: names[row[0]]),
            Column("requests", "Requests", requests, is_numeric=True),
            *use_columns(lambda row: row[1], lambda row: scores.get(row[0], ())),
        ],
        rows=rows,
        empty=Empty("No request was served a prompt in this range."),
        key=lambda row: visit.link("prompt", row[0]),
        keep=keep_address(visit, "Use of prompts", ChartKind.TABLE, USE_FIGURES, group_by="prompt"),
    )


def use_columns(figures: Any, scores: Any) -> list[Column]:
    """`figures` and `scores` are functions of a row."""

    def of(name: str, shown: Any) -> Any:
        return lambda row: shown(figures(row)[name])

    def mean_cost(row: Any) -> str:
        found = figures(row)
        priced = found["request_count"] - found["unpriced_request_count"]
        return money(found["total_cost_usd"] / priced) if priced else NONE

    def score(row: Any) -> str:
        found: Sequence[MeanScore] = scores(row)
        return in_words(found) or NONE

    return [
        Column("errors", "Errors", of("error_rate", share), is_numeric=True),
        Column("cost", "Cost", of("total_cost_usd", money), is_numeric=True),
        Column("mean_cost", "Each", mean_cost, is_numeric=True),
        Column("latency", "Mean latency", of("average_latency_ms", duration), is_numeric=True),
        Column("scores", "Mean scores", score),
    ]
