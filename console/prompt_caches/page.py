"""What the vendors' prompt caches saved and missed, by model and prompt version.

These figures come from single requests and are slow, so they are not on the page of usage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from analytics.parameters.ranges import TimeRange
from analytics.presenters.metrics import prompt_caches
from console.settings_form.warnings import setting_link
from core.ui import formats
from core.ui.pages import Page, Visit
from core.ui.panels import Panel
from core.ui.tables import Column, Empty, Numbered, Table
from integrations.registry import provider_title
from prompts.models import PromptConfig

PAGE_ROWS = 25

_REQUESTS = "analytics_requests_changelist"


class PromptCachesPage(Page):
    route = "usage/prompt-caches/"
    name = "prompt_caches"
    title = "Prompt caches"
    parent = "usage"

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        return {"markers": setting_link(visit, "prompt_cache_markers")}

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        return [Panel.of_table("rows", "By model and version of a prompt", lambda: _rows(visit), is_wide=True)]


def _rows(visit: Visit) -> Table:
    numbered = Numbered(visit.request.GET, PAGE_ROWS)
    found = prompt_caches(visit.project.pk, TimeRange(visit.period.start, visit.period.end), numbered.page)
    settings = visit.link_if_there("settings")
    return Table(
        caption=f"{formats.number(found.count)} in all, those that saved most first",
        columns=_columns(visit, _names(visit, found.results)),
        rows=found.results,
        empty=Empty("No request in this range.", settings, "Settings of prompt caches" if settings else ""),
        **numbered.links(found.count, is_counted=False),
    )


def _names(visit: Visit, rows: Sequence[Mapping[str, Any]]) -> Mapping[Any, str]:
    ids = {row["prompt_config_id"] for row in rows if row["prompt_config_id"]}
    return dict(PromptConfig.objects.for_project(visit.project.pk).filter(pk__in=ids).values_list("pk", "name"))


def _columns(visit: Visit, names: Mapping[Any, str]) -> list[Column]:
    def model(row: Mapping[str, Any]) -> Any:
        return visit.linked(row["model"], _REQUESTS, provider=row["provider"], model=row["model"])

    def prompt(row: Mapping[str, Any]) -> str:
        if row["prompt_config_id"] is None:
            return "without a managed prompt"
        return f"{names.get(row['prompt_config_id'], 'a deleted prompt')}, version {row['prompt_version']}"

    def share(row: Mapping[str, Any]) -> str:
        return formats.share(row["cache_read_tokens"] / row["input_tokens"] if row["input_tokens"] else None)

    return [
        Column("model", "Model", model),
        Column("provider", "Provider", lambda row: provider_title(row["provider"])),
        Column("prompt", "Prompt", prompt),
        Column("requests", "Requests", lambda row: formats.number(row["request_count"]), is_numeric=True),
        Column("input", "Input tokens", lambda row: formats.number(row["input_tokens"]), is_numeric=True),
        Column("read", "Read from the cache", share, is_numeric=True),
        Column(
            "written", "Written", lambda row: formats.number(row["cache_write_tokens"]), is_numeric=True, gives_way=True
        ),
        Column("saved", "Saved", lambda row: formats.money(row["saved_usd"]), is_numeric=True),
        Column("missed", "Missed", lambda row: formats.money(row["missed_usd"]), is_numeric=True),
    ]
