from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from core.ui.formats import NONE, compact, duration, money, number, share
from core.ui.marks import status
from core.ui.pages import Visit
from core.ui.tables import Column
from gateway.model_catalog.filters import ABILITIES
from gateway.model_catalog.offers import KeysOfModel, Offer

# What people call the abilities.
LABELS = {
    "images": "images",
    "documents": "PDF",
    "audio": "audio",
    "video": "video",
    "tools": "tools",
    "parallel_tools": "several tools at once",
    "structured_output": "structured output",
    "reasoning": "reasoning",
}
_LOG = "analytics_requests_changelist"
_SHOWN_NAMES = 3

KeysOf = Callable[[Offer], KeysOfModel]


def abilities(offer: Offer) -> list[str]:
    return [LABELS[name] for name, field in ABILITIES.items() if getattr(offer.abilities, field)]


def facts_columns() -> list[Column]:
    return [
        Column("context_window", "Context", lambda row: compact(row.context_window), "context_window", is_numeric=True),
        Column(
            "max_output_tokens", "Output up to", lambda row: compact(row.max_output_tokens), "max_output_tokens",
            is_numeric=True, is_default=False,
        ),
    ]  # fmt: skip


def price_columns(*, with_cache: bool) -> list[Column]:
    """Returns the columns of prices per million tokens."""
    return [
        _price("input_cost_per_1m", "In", "input"),
        _price("output_cost_per_1m", "Out", "output"),
        _price("cache_read_cost_per_1m", "Cache read", "cache_read", is_default=with_cache),
        _price("cache_write_cost_per_1m", "Cache write", "cache_write", is_default=with_cache, sort=""),
    ]


def figure_columns(visit: Visit) -> list[Column]:
    return [
        Column("request_count", "Requests", lambda row: _requests(visit, row), "request_count", is_numeric=True),
        Column("total_cost_usd", "Cost", _cost, "total_cost_usd", is_numeric=True),
        Column("error_rate", "Failed", _failed, "error_rate", is_numeric=True),
        _duration("p50_latency_ms", "p50"),
        _duration("p95_latency_ms", "p95"),
        _duration("p50_ttft_ms", "First token"),
        Column("tokens_per_second", "Tokens/s", _speed, "tokens_per_second", is_numeric=True),
    ]  # fmt: skip


def access_columns(visit: Visit, keys_of: KeysOf, *, is_default: bool) -> list[Column]:
    return [
        Column("api_keys", "API keys", lambda row: key_names(keys_of(row)), is_default=is_default),
        Column("model_groups", "Model groups", lambda row: _groups(visit, row), is_default=is_default),
    ]


def key_names(keys: KeysOfModel) -> str:
    if keys.all_keys:
        return "all"
    shown = ", ".join(keys.names[:_SHOWN_NAMES])
    more = len(keys.names) - _SHOWN_NAMES
    return f"{shown} and {more} more" if more > 0 else shown or NONE


def provider(offer: Offer) -> SafeString | str:
    if offer.is_callable:
        return offer.provider_title
    return format_html("{} {}", offer.provider_title, status("cannot be called", "neutral"))


def price(amount: Decimal | None) -> str:
    return NONE if amount is None else money(amount)


def _price(name: str, label: str, field: str, *, is_default: bool = True, sort: str | None = None) -> Column:
    def cell(row: Any) -> str:
        return price(getattr(row.price, field)) if row.price else NONE

    return Column(name, label, cell, name if sort is None else sort, is_numeric=True, is_default=is_default)


def _requests(visit: Visit, row: Offer) -> SafeString | str:
    if not row.requests:
        return NONE
    shown: SafeString | str = visit.linked(number(row.requests), _LOG, model=row.name, provider=row.provider)
    return shown


def _duration(name: str, label: str) -> Column:
    return Column(name, label, lambda row: duration(getattr(row.figures, name)), name, is_numeric=True)


def _cost(row: Offer) -> str:
    return money(row.figures.total_cost_usd) if row.requests else NONE


def _failed(row: Offer) -> str:
    return NONE if row.figures.error_rate is None else share(row.figures.error_rate)


def _speed(row: Offer) -> str:
    found = row.figures.tokens_per_second
    return NONE if found is None else number(round(found))


def _groups(visit: Visit, row: Offer) -> SafeString | str:
    if not row.groups:
        return NONE
    href = visit.link_if_there("model_groups")
    return format_html_join(", ", '<a href="{}">{}</a>', ((href, name) for name in row.groups))
