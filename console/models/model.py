from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString

from console.models import cells
from console.models.list import LIST, MODEL, figures_of
from core.ui.formats import NONE
from core.ui.pages import Page, Visit
from core.ui.panels import Panel
from core.ui.tables import Column, Empty, Table
from gateway.model_catalog.offers import Catalog, Offer
from integrations.capabilities.lookup import family_of

_NAME_CHARACTERS = 200
_EMPTY = Empty("No provider that is known here has this model.")
_PLAYGROUND, _CONNECT = "gateway_playground_changelist", "connect"


class ModelPage(Page):
    route = "models/<str:family>/"
    name = MODEL
    parent = LIST
    title = "Model"

    def __init__(self) -> None:
        self._known: Catalog | None = None

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        family = _family(route)
        offers = self._catalog(visit).offers_of(family)
        first = next((offer for offer in offers if offer.is_callable), None)
        return {
            "title": next((offer.title for offer in offers if offer.title != offer.name), family),
            "list_url": visit.link(LIST),
            "abilities": list(dict.fromkeys(label for offer in offers for label in cells.abilities(offer))),
            "playground": visit.link_if_there(_PLAYGROUND, model=first.id) if first else "",
            "connect": visit.link_if_there(_CONNECT, model=first.id) if first else "",
            "add_key": "" if first else visit.link_if_there("provider_keys"),
        }

    def existence(self, visit: Visit, **route: Any) -> Callable[[], bool]:
        family = _family(route)
        is_known = bool(self._catalog(visit).offers_of(family))
        return lambda: is_known or any(family_of(*place) == family for place in figures_of(visit))

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        family, catalog = _family(route), self._catalog(visit)
        return [
            Panel.of_table("figures", "How it does here", lambda: _figures(visit, family), is_wide=True),
            Panel.of_table("prices", "What it costs", lambda: _prices(visit, catalog, family), is_wide=True),
            Panel.of_table("access", "Who may call it", lambda: _access(visit, catalog, family), is_wide=True),
        ]

    def _catalog(self, visit: Visit) -> Catalog:
        """Read once: a page object serves a single request."""
        if self._known is None:
            self._known = Catalog(visit.project.pk)
        return self._known


def _family(route: Mapping[str, Any]) -> str:
    return str(route["family"])[:_NAME_CHARACTERS].lower()


def _figures(visit: Visit, family: str) -> Table:
    columns = [
        Column("provider", "Provider", cells.provider),
        Column("id", "Sent as", lambda row: format_html("<code>{}</code>", row.id)),
        *(_unsorted(column) for column in cells.figure_columns(visit)),
    ]
    offers = Catalog(visit.project.pk, figures_of(visit)).offers_of(family)
    return Table("Requests of the range, by provider", columns, offers, _EMPTY)


def _prices(visit: Visit, catalog: Catalog, family: str) -> Table:
    columns = [
        Column("provider", "Provider", cells.provider),
        Column("name", "Name there", lambda row: format_html("<code>{}</code>", row.name)),
        *(_unsorted(column) for column in (*cells.facts_columns(), *cells.price_columns(with_cache=True))),
        Column("history", "Price", lambda row: _history(visit, row)),
    ]
    return Table("Dollars per million tokens, by provider", columns, catalog.offers_of(family), _EMPTY)


def _access(visit: Visit, catalog: Catalog, family: str) -> Table:
    columns = [
        Column("provider", "Provider", cells.provider),
        *cells.access_columns(visit, catalog.keys_of, is_default=True),
        Column("try", "Try", lambda row: _try(visit, row)),
    ]
    return Table("API keys and model groups, by provider", columns, catalog.offers_of(family), _EMPTY)


def _unsorted(column: Column) -> Column:
    return Column(column.name, column.label, column.cell, is_numeric=column.is_numeric)


def _history(visit: Visit, row: Offer) -> SafeString | str:
    href = visit.link_if_there("price", provider=row.provider, model=row.name)
    label = "History" if row.price else "Set a price"
    return format_html(
        '<a href="{}">{}<span class="sr"> of the price at {}</span></a>', href, label, row.provider_title
    )


def _try(visit: Visit, row: Offer) -> SafeString | str:
    href = visit.link_if_there(_PLAYGROUND, model=row.id) if row.is_callable else ""
    if not href:
        return NONE
    return format_html('<a href="{}">In the playground<span class="sr"> at {}</span></a>', href, row.provider_title)
