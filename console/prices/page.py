from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.db.models import Q
from django.http import Http404, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase

from core.audit.actors import actor_name
from core.audit.recording import note
from core.errors import ApplicationError
from core.roles import Right
from core.ui.edit import EditPage
from core.ui.filters import FilterField, Filters
from core.ui.formats import UNKNOWN, moment
from core.ui.marks import status
from core.ui.pages import Page, Visit
from core.ui.tables import Column, Empty, Table, page_link
from integrations.pricing.entries import DIGITS, MAX_PER_MILLION, PLACES, is_model_name
from integrations.pricing.filters import PriceFilter
from integrations.pricing.models import SOURCE_TITLES, ModelPrice, PricePeriod, PriceSource, PriceSyncLog
from integrations.pricing.periods import COSTS
from integrations.pricing.selectors import price_periods, project_prices, sync_history
from integrations.pricing.services import price_list_changes, remove_price, set_price
from integrations.pricing.sync import sync_prices
from integrations.registry import provider_named, provider_title, providers

PAGE_ROWS = 50
_HISTORY_ROWS = 50
_LABELS = {
    "input_cost_per_1m": "Input",
    "output_cost_per_1m": "Output",
    "cache_read_cost_per_1m": "Cache reads",
    "cache_write_cost_per_1m": "Cache writes",
}
_MIN_PLACES = 2


class PriceForm(forms.Form):
    """Prices in US dollars per million tokens."""

    def __init__(self, row: ModelPrice | None, data: Any = None) -> None:
        super().__init__(data, initial={name: _plain(getattr(row, name)) for name in COSTS} if row else {})
        for name in COSTS:
            is_required = name in ("input_cost_per_1m", "output_cost_per_1m")
            self.fields[name] = forms.DecimalField(
                required=is_required,
                min_value=0,
                max_value=MAX_PER_MILLION,
                max_digits=DIGITS,
                decimal_places=PLACES,
                label=f"{_LABELS[name]}, $ per million tokens",
                help_text="" if is_required else "Empty: what input costs.",
            )


class PricesPage(Page):
    route = "prices/"
    name = "prices"
    title = "Prices"
    template = "prices/list.html"

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        fields = [
            FilterField("search", "Model or provider"),
            FilterField("source", "Source", kind="choice", choices=list(SOURCE_TITLES.items())),
        ]
        return {
            "filters": Filters(fields=fields, query=visit.request.GET),
            "table": _table(visit),
            "sync": sync_history().first(),
            "may_change": visit.may(Right.ADMINISTER),
            "price_address": visit.link("price"),
            "providers": [provider_title(name) for name in providers()],
        }

    def post(self, visit: Visit, **route: Any) -> HttpResponseBase:
        visit.require(Right.ADMINISTER)
        try:
            log = sync_prices(trigger=PriceSyncLog.Trigger.ADMIN, actor=visit.actor)
            for change in price_list_changes(log):
                note(change)
        except ApplicationError as error:
            return visit.failed(error.message, visit.link(self.name))
        messages.info(visit.request, f"The sync ended: {log.get_status_display()}.")
        return HttpResponseRedirect(visit.link(self.name))


class PricePage(EditPage[ModelPrice | None, PriceForm]):
    route = "prices/model/"
    name = "price"
    title = "Price"
    template = "prices/price.html"
    parent = "prices"
    right = Right.ADMINISTER
    saves = ("", "set")
    form_class = PriceForm

    def record(self, visit: Visit, **route: Any) -> ModelPrice | None:
        return project_prices(visit.project.pk).filter(**_chosen(visit)).first()

    def save(self, visit: Visit, record: ModelPrice | None, form: PriceForm) -> HttpResponseBase:
        project_id, costs = _project_of_price(visit), {name: form.cleaned_data[name] for name in COSTS}
        set_price(project_id=project_id, **_chosen(visit), costs=costs, actor=visit.actor)
        where = "this project" if project_id else "all projects"
        return visit.done(f"Set: requests from now on cost this, in {where}.", self.address(visit, record))

    def do_remove(self, visit: Visit, record: ModelPrice | None) -> HttpResponseBase:
        remove_price(project_id=_project_of_price(visit), **_chosen(visit), actor=visit.actor)
        said = "The price that was set is gone; the catalogs' price counts again."
        return visit.done(said, self.address(visit, record))

    def address(self, visit: Visit, record: ModelPrice | None) -> str:
        return visit.link(self.name, **_chosen(visit))

    def shown(self, visit: Visit, record: ModelPrice | None, form: PriceForm) -> Mapping[str, Any]:
        chosen, row = _chosen(visit), record
        periods = list(price_periods(visit.project.pk, chosen["provider"], chosen["model"])[:_HISTORY_ROWS])
        return {
            "title": f"{chosen['model']} at {provider_title(chosen['provider'])}",
            "source": _source(row) if row else "",
            "costs": [(label, price_in_words(getattr(row, name))) for name, label in _LABELS.items()] if row else [],
            "is_own": row is not None and row.project_id is not None,
            "is_set": row is not None and row.source == PriceSource.MANUAL,
            "may_set_for_all": visit.may(Right.OPERATE),
            "history": _history(periods),
        }


def price_in_words(value: Decimal | None) -> str:
    """Formats a price per million tokens with at least two decimals, and no trailing zeros after these."""
    if value is None:
        return UNKNOWN
    text = _plain(value)
    whole, _, places = text.partition(".")
    return f"${int(whole):,}.{places.ljust(_MIN_PLACES, '0')}"


def _plain(value: Decimal | None) -> str:
    return "" if value is None else f"{value.normalize():f}"


def _chosen(visit: Visit) -> dict[str, str]:
    provider, model = provider_named(visit.request.GET.get("provider", "")), visit.request.GET.get("model", "").strip()
    if not provider or not is_model_name(model):
        raise Http404("There is no such model.")
    return {"provider": provider, "model": model}


def _project_of_price(visit: Visit) -> UUID | None:
    """None stands for the price of all projects, which only superusers set."""
    if "all_projects" not in visit.request.POST:
        return visit.project.pk
    visit.require(Right.OPERATE)
    return None


def _table(visit: Visit) -> Table:
    query = visit.request.GET
    found = PriceFilter(query, queryset=project_prices(visit.project.pk)).qs
    page = list(_after(found, query)[: PAGE_ROWS + 1])
    last = page[PAGE_ROWS - 1] if len(page) > PAGE_ROWS else None
    return Table(
        caption="Prices in US dollars per million tokens",
        columns=[
            Column("model", "Model", lambda row: row.model),
            Column("provider", "Provider", lambda row: provider_title(row.provider)),
            *_cost_columns(),
            Column("source", "Source", _source, gives_way=True),
            Column("updated", "Changed", lambda row: moment(row.updated_at)),
        ],
        rows=page[:PAGE_ROWS],
        query=query,
        key=lambda row: visit.link("price", provider=row.provider, model=row.model),
        empty=Empty("No price fits these filters."),
        next_url=page_link(query, cursor=f"{last.provider}\n{last.model}") if last else "",
        previous_url=page_link(query, cursor="") if query.get("cursor") else "",
    )


def _after(found: Any, query: QueryDict) -> Any:
    """The cursor names the last row of the page before."""
    provider, _, model = query.get("cursor", "").partition("\n")
    if not provider or "\x00" in provider + model:
        return found
    return found.filter(Q(provider__gt=provider) | Q(provider=provider, model__gt=model))


def _cost_columns() -> list[Column]:
    return [
        Column(name, label, lambda row, name=name: price_in_words(getattr(row, name)), is_numeric=True)  # type: ignore[misc]
        for name, label in _LABELS.items()
    ]


def _source(row: ModelPrice | PricePeriod) -> Any:
    if row.project_id:
        return status("own", "neutral", "the project's own")
    is_free = not (row.input_cost_per_1m or row.output_cost_per_1m or row.terms)
    return f"free, says {SOURCE_TITLES[row.source]}" if is_free else SOURCE_TITLES[row.source]


def _changed_by(actor: str) -> str:
    return "a price sync" if actor.startswith("sync:") else actor_name(actor)


def _history(periods: Sequence[PricePeriod]) -> Table:
    return Table(
        caption="Which price counted when, the latest first",
        columns=[
            Column("from", "From", lambda row: moment(row.valid_from)),
            Column("until", "Until", lambda row: moment(row.valid_until) if row.valid_until else "now"),
            *_cost_columns(),
            Column("source", "Source", _source),
            Column("by", "Changed by", lambda row: _changed_by(row.changed_by)),
        ],
        rows=periods,
        empty=Empty("No price of this model is known."),
    )
