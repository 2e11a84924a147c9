"""Pages of lists, `{"count", "next", "previous", "results"}`, of querysets and ClickHouse rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from django.db.models import QuerySet
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from core.errors import ValidationError
from core.http.paths import with_encoded_slashes

DEFAULT_LIMIT = 20
MAXIMUM_LIMIT = 1000
# The maximum offset, which together with any limit fits the signed 64-bit integers of the databases.
MAXIMUM_OFFSET = 2**62

# The pattern admits digits alone; int() would also take signs, underscores, blanks and other scripts' digits.
_WHOLE = re.compile(r"[0-9]{1,19}", re.ASCII)

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Page:
    limit: int
    offset: int

    def of(self, rows: Sequence[Item]) -> Sequence[Item]:
        return rows[self.offset : self.offset + self.limit]


@dataclass(frozen=True, slots=True)
class Listing:
    count: int
    results: Sequence[Mapping[str, Any]]
    more: Mapping[str, Any] = field(default_factory=dict)

    def shown_as(self, shown: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> Listing:
        return replace(self, results=[shown(result) for result in self.results])


@dataclass(frozen=True, slots=True)
class CursorListing:
    count: int
    results: Sequence[Mapping[str, Any]]
    next: str | None
    previous: str | None

    def shown_as(self, shown: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> CursorListing:
        return replace(self, results=[shown(result) for result in self.results])


def parse_page(request: Request, default: int = DEFAULT_LIMIT, maximum: int = MAXIMUM_LIMIT) -> Page:
    return Page(
        limit=_whole(request, "limit", default=default, minimum=1, maximum=maximum),
        offset=_whole(request, "offset", default=0, minimum=0, maximum=MAXIMUM_OFFSET),
    )


def page_response(request: Request, page: Page, count: int, results: Sequence[Any]) -> Response:
    """`results` are already cut to `page`; `count` is the number of rows in all."""
    return Response(
        {
            "count": count,
            "next": _link(request, page, page.offset + page.limit) if page.offset + page.limit < count else None,
            "previous": _link(request, page, max(0, page.offset - page.limit)) if page.offset > 0 else None,
            "results": results,
        }
    )


def listing_response(request: Request, page: Page, listing: Listing) -> Response:
    body = page_response(request, page, listing.count, listing.results).data
    return Response({**listing.more, **body})


def cursor_response(request: Request, page: Page, listing: CursorListing) -> Response:
    return Response(
        {
            "count": listing.count,
            "next": _cursor_link(request, page, listing.next),
            "previous": _cursor_link(request, page, listing.previous),
            "results": listing.results,
        }
    )


class LimitOffset(BasePagination):
    default_limit = DEFAULT_LIMIT
    max_limit = MAXIMUM_LIMIT

    def paginate_queryset(
        self, queryset: QuerySet[Any] | Sequence[Item], request: Request, view: Any = None
    ) -> list[Any]:
        self.request = request
        self.page = parse_page(request, self.default_limit, self.max_limit)
        self.count = queryset.count() if isinstance(queryset, QuerySet) else len(queryset)
        return list(queryset[self.page.offset : self.page.offset + self.page.limit])

    def get_paginated_response(self, data: Any) -> Response:
        return page_response(self.request, self.page, self.count, data)


def _whole(request: Request, name: str, *, default: int, minimum: int, maximum: int) -> int:
    raw = request.query_params.get(name)
    if raw is None:
        return default
    if not _WHOLE.fullmatch(raw) or not minimum <= int(raw) <= maximum:
        problem = f"Must be a whole number from {minimum} to {maximum}."
        raise ValidationError.of_field(name, problem)
    return int(raw)


def _link(request: Request, page: Page, offset: int) -> str:
    url = replace_query_param(with_encoded_slashes(request.build_absolute_uri()), "limit", str(page.limit))
    return replace_query_param(url, "offset", str(offset))


def _cursor_link(request: Request, page: Page, cursor: str | None) -> str | None:
    if cursor is None:
        return None
    url = replace_query_param(with_encoded_slashes(request.build_absolute_uri()), "limit", str(page.limit))
    return replace_query_param(url, "cursor", cursor)
