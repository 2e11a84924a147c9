from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString

from analytics.parameters.ranges import TimeRange
from console.models import cells
from core.ui.filters import FilterField, Filters
from core.ui.pages import Page, Visit
from core.ui.panels import Panel
from core.ui.tables import Column, Empty, Numbered, Table, page_link
from gateway.model_catalog.filters import SORTS, CatalogFilter, matching, sorted_by
from gateway.model_catalog.offers import Catalog, Figures, Offer, read_figures
from integrations.registry import provider_title, providers

LIST, MODEL = "models", "model"

_PER_PAGE = 50
_MAX_PAGE = 1_000
_ALL = "all"
# Most models with tools can, so that it is said on the page of the model, and a row stays short.
_LEFT_OUT = cells.LABELS["parallel_tools"]


class ModelsPage(Page):
    route = "models/"
    name = LIST
    title = "Models"

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        query = visit.request.GET
        with_others = bool(query.get(_ALL))
        return {
            "filters": Filters(_fields(), query),
            "with_others": with_others,
            "others_href": page_link(query, **{_ALL: "" if with_others else "1", "p": ""}),
        }

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        return [Panel.of_table("models", "Models", lambda: _table(visit), is_wide=True)]


def figures_of(visit: Visit) -> Figures:
    return read_figures(visit.project.pk, TimeRange(visit.period.start, visit.period.end))


def _fields() -> list[FilterField]:
    named = sorted(((name, provider_title(name)) for name in providers()), key=lambda pair: pair[1].lower())
    return [
        FilterField("q", "Name"),
        FilterField("provider", "Provider", "choice", named),
        FilterField("ability", "Can", "choice", list(cells.LABELS.items())),
    ]


def _table(visit: Visit) -> Table:
    query = visit.request.GET
    catalog = Catalog(visit.project.pk, figures_of(visit))
    ability, sort = query.get("ability", ""), query.get("sort", "")
    given = CatalogFilter(
        search=query.get("q", ""),
        provider=query.get("provider", ""),
        abilities=[ability] if ability in cells.LABELS else [],
    )
    found = sorted_by(matching(catalog.offers(with_others=bool(query.get(_ALL))), given), sort)
    numbered = Numbered(query, _PER_PAGE, _MAX_PAGE)
    return Table(
        caption="Models at their providers, the most used of the range first; prices in dollars per million tokens",
        columns=[
            Column("name", "Model", _model, "name"),
            Column("provider", "Provider", cells.provider, "provider"),
            *cells.facts_columns(),
            *cells.price_columns(with_cache=False),
            *cells.figure_columns(visit),
            *cells.access_columns(visit, catalog.keys_of, is_default=False),
        ],
        rows=found[numbered.rows],
        empty=Empty(
            "No model matches."
            if query.get("q") or given.provider or ability
            else "The project can call no model yet.",
            visit.link_if_there("provider_keys"),
            "Add a provider key",
        ),
        sort=sort if sort.lstrip("-") in SORTS else "",
        key=lambda row: visit.link(MODEL, row.family),
        has_chooser=True,
        **numbered.links(len(found)),
    )


def _model(row: Offer) -> SafeString:
    can = ", ".join(label for label in cells.abilities(row) if label != _LEFT_OUT)
    return format_html("{}{}", row.title, format_html("<small>{}</small>", can) if can else "")
