"""The operations that list figures of a range of time, each declared once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar

from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from analytics.parameters.common import RANGE
from analytics.parameters.ranges import parse_range
from core.api.viewsets import ProjectViewSet
from core.openapi import PAGE, operation
from core.wire.pagination import Listing, listing_response, parse_page
from core.wire.parameters import Parameters, RangeParameters


@dataclass(frozen=True)
class Figures:
    """An operation: `found` takes the project, the range, the page and the values of `query` by name, and `page` is the
    shape of a result. `fields` are the answer's further fields beside its range."""

    operation_id: str
    summary: str
    found: Callable[..., Listing]
    page: Any
    query: Sequence[type[Parameters]] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)
    description: str = ""
    max_length: timedelta | None = None


class FiguresViewSet(ProjectViewSet):
    """Has the operations that `figures` names by the end of their path; that of the path itself is `list`."""

    figures: ClassVar[Mapping[str, Figures]]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for path, figures in cls.figures.items():
            setattr(cls, path.replace("-", "_"), _operation(path, figures))


def _operation(path: str, figures: Figures) -> Callable[..., Response]:
    def handler(view: FiguresViewSet, request: Request) -> Response:
        page, time_range = parse_page(request), parse_range(request, max_length=figures.max_length)
        given: dict[str, Any] = {}
        for parameters in figures.query:
            given |= view.valid_query(parameters).validated_data
        return listing_response(request, page, figures.found(view.project_id, time_range, page, **given))

    handler.__name__, handler.__doc__ = path.replace("-", "_"), figures.description
    described = operation(
        figures.operation_id,
        figures.summary,
        query=[PAGE, RangeParameters, *figures.query],
        page=figures.page,
        page_fields={**RANGE, **figures.fields},
    )
    return described(handler if path == "list" else action(detail=False, url_path=path)(handler))
