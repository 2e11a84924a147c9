from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

from django.db.models import QuerySet
from django_filters.filterset import FilterSet
from django_filters.utils import translate_validation
from msgspec import Meta
from rest_framework.serializers import BaseSerializer

from agent.tools.base import Arguments
from core.wire.pagination import MAXIMUM_OFFSET, Listing, Page

DEFAULT_LIMIT = 20
MAXIMUM_LIMIT = 100

Limit = Annotated[int, Meta(ge=1, le=MAXIMUM_LIMIT, description="How many results to return.")]
Offset = Annotated[
    int, Meta(ge=0, le=MAXIMUM_OFFSET, description="How many results to skip: `next_offset` of the page before.")
]
Date = Annotated[
    str,
    Meta(
        max_length=40,
        description="ISO 8601, in UTC unless it says an offset; a date alone is the whole day, both ends included.",
    ),
]
Last = Annotated[
    str,
    Meta(
        pattern="^[1-9][0-9]{0,3}[mhdw]$",
        description="Instead of dates, the time up to now: 45m, 24h, 7d, 4w. Days are whole UTC days, today included.",
    ),
]
Period = Annotated[
    Literal["today", "yesterday", "this_week", "last_week", "this_month", "last_month"],
    Meta(description="Instead of dates, a period of the UTC calendar; weeks begin on Monday."),
]


class PageArguments(Arguments, kw_only=True, frozen=True):
    limit: Limit = DEFAULT_LIMIT
    offset: Offset = 0


class RangeArguments(Arguments, kw_only=True, frozen=True):
    start_date: Date = ""
    end_date: Date = ""
    last: Last | None = None
    period: Period | None = None


class PagedRangeArguments(RangeArguments, kw_only=True, frozen=True):
    limit: Limit = DEFAULT_LIMIT
    offset: Offset = 0


def page_of(arguments: PageArguments | PagedRangeArguments) -> Page:
    return Page(arguments.limit, arguments.offset)


def listed(listing: Listing, page: Page) -> dict[str, Any]:
    following = page.offset + page.limit
    return {
        "count": listing.count,
        "limit": page.limit,
        "offset": page.offset,
        "next_offset": following if following < listing.count else None,
        **listing.more,
        "results": list(listing.results),
    }


def listed_rows(
    rows: QuerySet[Any], serializer: type[BaseSerializer[Any]], arguments: PageArguments | PagedRangeArguments
) -> dict[str, Any]:
    page = page_of(arguments)
    shown = serializer(rows[page.offset : page.offset + page.limit], many=True).data
    return listed(Listing(rows.count(), shown), page)


def listed_each(
    rows: QuerySet[Any], shown: Callable[[Any], Mapping[str, Any]], arguments: PageArguments | PagedRangeArguments
) -> dict[str, Any]:
    page = page_of(arguments)
    found = rows[page.offset : page.offset + page.limit]
    return listed(Listing(rows.count(), [shown(row) for row in found]), page)


def filtered(filters: type[FilterSet], values: Mapping[str, Any], rows: QuerySet[Any]) -> QuerySet[Any]:
    """Applies the management API's own filters; empty values filter nothing. Raises DRF's ValidationError."""
    found = filters({name: value for name, value in values.items() if value not in ("", None)}, queryset=rows)
    if not found.is_valid():
        raise translate_validation(found.errors)
    narrowed: QuerySet[Any] = found.qs
    return narrowed


def chosen(arguments: Arguments, names: Sequence[str]) -> dict[str, Any]:
    values = {name: getattr(arguments, name) for name in names}
    return {name: value for name, value in values.items() if value not in ("", None)}
