"""The page of the vendors' prompt caches: what they saved and missed, by model and version of a prompt.

It is a page of its own because its figures come from single requests, so that the page of usage does not wait for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.html import format_html

from analytics.parameters.ranges import TimeRange
from analytics.presenters.metrics import prompt_caches
from console.settings_form.warnings import setting_link
from core.ui import formats
from core.ui.pages import Page, Visit
from core.ui.panels import Panel
from core.ui.registry import register_page
from core.ui.tables import Column, Empty, Table, page_link, page_number
from core.wire.pagination import Page as ListPage
from integrations.registry import provider_title
from prompts.models import PromptConfig

PAGE_ROWS = 25

_REQUESTS = "analytics_requests_changelist"


@register_page
class PromptCachesPage(Page):
    route = "usage/prompt-caches/"
    name = "prompt_caches"
    title = "Prompt caches"
    parent = "usage"
    template = "prompt_caches/page.html"

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        return {"markers": setting_link(visit, "prompt_cache_markers")}

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        return [Panel.of_table("rows", "By model and version of a prompt", lambda: _rows(visit), is_wide=True)]


def _rows(visit: Visit) -> Table:
    number = page_number(visit.request.GET)
    page = ListPage(PAGE_ROWS, (number - 1) * PAGE_ROWS)
    found = prompt_caches(visit.project.pk, TimeRange(visit.period.start, visit.period.end), page)
    query = visit.request.GET
    settings = visit.link_if_there("settings")
    return Table(
        caption=f"{formats.number(found.count)} in all, those that saved most first",
        columns=_columns(visit, _names(visit, found.results)),
        rows=found.results,
        empty=Empty("No request in this range.", settings, "Settings of prompt caches" if settings else ""),
        query=query,
        next_url=page_link(query, p=str(number + 1)) if page.offset + PAGE_ROWS < found.count else "",
        previous_url=page_link(query, p=str(number - 1) if number > 2 else "") if number > 1 else "",
    )


def _names(visit: Visit, rows: Sequence[Mapping[str, Any]]) -> Mapping[Any, str]:
    """Returns the names of the prompts that still exist, by id."""
    ids = {row["prompt_config_id"] for row in rows if row["prompt_config_id"]}
    return dict(PromptConfig.objects.for_project(visit.project.pk).filter(pk__in=ids).values_list("pk", "name"))


def _columns(visit: Visit, names: Mapping[Any, str]) -> list[Column]:
    def model(row: Mapping[str, Any]) -> Any:
        href = visit.link_if_there(_REQUESTS, provider=row["provider"], model=row["model"])
        return format_html('<a href="{}">{}</a>', href, row["model"]) if href else row["model"]

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
