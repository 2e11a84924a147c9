"""The pages of prices: a searched list per million tokens, and one model's price with its history."""

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
from core.ui.filters import FilterField, Filters
from core.ui.formats import UNKNOWN, moment
from core.ui.marks import status
from core.ui.pages import Page, Visit
from core.ui.registry import register_page
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

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
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


@register_page
class PricesPage(Page):
    route = "prices/"
    name = "prices"
    title = "Prices"
    template = "prices/list.html"
    methods = ("GET", "HEAD", "POST")

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
        """Syncs the prices of all projects with both catalogs."""
        visit.require(Right.ADMINISTER)
        actor = visit.actor
        try:
            log = sync_prices(trigger=PriceSyncLog.Trigger.ADMIN, actor=actor)
            for change in price_list_changes(log):
                note(change)
        except ApplicationError as error:
            messages.error(visit.request, error.message)
        else:
            messages.info(visit.request, f"The sync ended: {log.get_status_display()}.")
        return HttpResponseRedirect(visit.link(self.name))


@register_page
class PricePage(Page):
    """One model: its price now, one of the project's own, and which price counted when."""

    route = "prices/model/"
    name = "price"
    title = "Price"
    template = "prices/price.html"
    parent = "prices"
    methods = ("GET", "HEAD", "POST")

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        provider, model = _chosen(visit)
        row = _row(visit, provider, model)
        initial = {name: _plain(getattr(row, name)) for name in COSTS} if row else {}
        return _shown(visit, provider, model, PriceForm(initial=initial))

    def post(self, visit: Visit, **route: Any) -> HttpResponseBase:
        visit.require(Right.ADMINISTER)
        provider, model = _chosen(visit)
        actor = visit.actor
        form = PriceForm(visit.request.POST)
        project_id = _project_of_price(visit)
        is_removal = visit.request.POST.get("action") == "remove"
        if not is_removal and not form.is_valid():
            return self.render(visit, **_shown(visit, provider, model, form))
        try:
            if is_removal:
                remove_price(project_id=project_id, provider=provider, model=model, actor=actor)
                messages.success(visit.request, "The price that was set is gone; the catalogs' price counts again.")
            else:
                costs = {name: form.cleaned_data[name] for name in COSTS}
                set_price(project_id=project_id, provider=provider, model=model, costs=costs, actor=actor)
                messages.success(
                    visit.request,
                    f"Set: requests from now on cost this, in {'this project' if project_id else 'all projects'}.",
                )
        except ApplicationError as error:
            messages.error(visit.request, error.message)
        return HttpResponseRedirect(visit.link(self.name, provider=provider, model=model))


def price_in_words(value: Decimal | None) -> str:
    """Returns a price per million tokens, with at least two decimals and no trailing zeros beyond them."""
    if value is None:
        return UNKNOWN
    text = _plain(value)
    whole, _, places = text.partition(".")
    return f"${int(whole):,}.{places.ljust(_MIN_PLACES, '0')}"


def _plain(value: Decimal | None) -> str:
    return "" if value is None else f"{value.normalize():f}"


def _chosen(visit: Visit) -> tuple[str, str]:
    """Returns the provider and the model in the address. Raises Http404."""
    provider, model = provider_named(visit.request.GET.get("provider", "")), visit.request.GET.get("model", "").strip()
    if not provider or not is_model_name(model):
        raise Http404("There is no such model.")
    return provider, model


def _project_of_price(visit: Visit) -> UUID | None:
    """Returns the project whose price the form sets; None for the price of all projects, which superusers set."""
    if "all_projects" not in visit.request.POST:
        return visit.project.pk
    visit.require(Right.OPERATE)
    return None


def _row(visit: Visit, provider: str, model: str) -> ModelPrice | None:
    return project_prices(visit.project.pk).filter(provider=provider, model=model).first()


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
    """Returns the prices after the cursor, which names the last row of the page before."""
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
    return status("own", "neutral", "the project's own") if row.project_id else SOURCE_TITLES[row.source]


def _shown(visit: Visit, provider: str, model: str, form: PriceForm) -> dict[str, Any]:
    row = _row(visit, provider, model)
    periods = list(price_periods(visit.project.pk, provider, model)[:_HISTORY_ROWS])
    return {
        "title": f"{model} at {provider_title(provider)}",
        "row": row,
        "source": _source(row) if row else "",
        "costs": [(label, price_in_words(getattr(row, name))) for name, label in _LABELS.items()] if row else [],
        "is_own": row is not None and row.project_id is not None,
        "is_set": row is not None and row.source == PriceSource.MANUAL,
        "may_set_for_all": visit.may(Right.OPERATE),
        "form": form if visit.may(Right.ADMINISTER) else None,
        "history": _history(periods),
        "list_address": visit.link("prices"),
    }


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
