"""The one decorator of actions, which names a management call and describes its input and its answers.

    @operation("listThings", "List things", query=[PAGE, ThingParameters], page=Thing)
    def list(self, request: Request) -> Response: ...

Shapes are serializers or typed dictionaries. What every management call has in common (credentials, `project_id`, the
failures, `x-request-id`) is added here and in `core.openapi.schema`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers

from core.openapi.failures import failures
from core.openapi.shapes import page_of, reference
from core.wire.pagination import DEFAULT_LIMIT, MAXIMUM_LIMIT, MAXIMUM_OFFSET

Handler = TypeVar("Handler", bound=Callable[..., HttpResponseBase])
Shape = Any

JSON = "application/json"

_ALWAYS = (400, 401, 403, 406, 500, 503)
_WITH_BODY = (413, 415)
_SUCCESS = {
    200: "Done.",
    201: "Made.",
    202: "Taken on: it is done in the background.",
    204: "Gone; the answer has no body.",
}


@dataclass(frozen=True)
class Query:
    """An operation's query parameters; `is_list` adds the view's filters."""

    names: frozenset[str]
    is_list: bool


class PROJECT(serializers.Serializer[Any]):
    project_id = serializers.UUIDField(required=False, help_text="The project of the header.")


def page_parameters(default: int = DEFAULT_LIMIT, maximum: int = MAXIMUM_LIMIT) -> type[serializers.Serializer[Any]]:
    limits = {
        "limit": serializers.IntegerField(required=False, default=default, min_value=1, max_value=maximum),
        "offset": serializers.IntegerField(required=False, default=0, min_value=0, max_value=MAXIMUM_OFFSET),
    }
    return type(f"PageParameters{default}", (serializers.Serializer,), limits)


PAGE = page_parameters()


def operation(
    operation_id: str,
    summary: str,
    *,
    query: Sequence[Shape] = (),
    body: Shape = None,
    answer: Shape = None,
    page: Shape = None,
    page_fields: Mapping[str, Shape] | None = None,
    status: int = 200,
    also: Mapping[tuple[int, str], Shape] | None = None,
    errors: Sequence[int] = (),
    media_type: str = JSON,
    description: str | None = None,
) -> Callable[[Handler], Handler]:
    """Describes an action; goes above REST framework's `@action`.

    `page` is the shape of a list's results, `page_fields` the list's further fields, `also` further successes by
    (status, media type). A `body` other than JSON is its shape by media type. Without `description` the action's
    docstring is shown.
    """
    answer_shape = _page(page, page_fields or {}) if page is not None else answer
    statuses = {*_ALWAYS, *errors, *(_WITH_BODY if body is not None else ())}
    responses: dict[Any, Any] = {
        key: OpenApiResponse(_known(shape), description=_SUCCESS[key[0]])
        for key, shape in {(status, media_type): answer_shape, **(also or {})}.items()
    }
    described: Callable[[Handler], Handler] = extend_schema(
        operation_id=operation_id,
        summary=summary,
        description=description,
        parameters=[PROJECT, *query],
        request=body,
        responses={**responses, **failures(*statuses)},
    )
    shape_of_query = Query(frozenset(name for shape in query for name in _names(shape)), is_list=page is not None)

    def decorate(handler: Handler) -> Handler:
        # `core.api.permissions` finds the right that the call needs by this id.
        handler.operation_id = operation_id  # type: ignore[attr-defined]  # a function takes any
        handler.body = body  # type: ignore[attr-defined]  # read by `requires_body`
        handler.query = shape_of_query  # type: ignore[attr-defined]  # read by `query_of`
        return described(handler)

    return decorate


def query_of(handler: Any) -> Query | None:
    found: Query | None = getattr(handler, "query", None)
    return found


def requires_body(handler: Any, method: str) -> bool:
    """Returns whether an empty body is refused. PUT and PATCH must say what they write; a POST with only optional
    fields takes no body as `{}`."""
    shape = getattr(handler, "body", None)
    if shape is None or isinstance(shape, Mapping):
        return shape is not None
    return method in ("PUT", "PATCH") or (method == "POST" and _is_needed(shape))


@cache
def _is_needed(shape: type[serializers.Serializer[Any]]) -> bool:
    return getattr(shape, "is_needed", False) or any(field.required for field in shape().fields.values())


def _names(shape: Shape) -> Iterable[str]:
    return shape().fields if _is_serializer(shape) else ()


def _is_serializer(shape: Shape) -> bool:
    return isinstance(shape, serializers.BaseSerializer) or (
        isinstance(shape, type) and issubclass(shape, serializers.BaseSerializer)
    )


def _known(shape: Shape) -> Shape:
    return shape if shape is None or isinstance(shape, dict) or _is_serializer(shape) else reference(shape)


def _page(result: Shape, more: Mapping[str, Shape]) -> Shape:
    return _serializer_page(result) if _is_serializer(result) else page_of(_known(result), **more)


@cache
def _serializer_page(result: type[serializers.Serializer[Any]]) -> type[serializers.Serializer[Any]]:
    fields: dict[str, Any] = {
        "count": serializers.IntegerField(min_value=0, help_text="Of all pages."),
        "next": serializers.URLField(allow_null=True),
        "previous": serializers.URLField(allow_null=True),
        "results": result(many=True),
    }
    return type(f"{result.__name__.removesuffix('Serializer')}Page", (serializers.Serializer,), fields)


def path_parameter(name: str, kind: Any, description: str) -> OpenApiParameter:
    return OpenApiParameter(name, kind, OpenApiParameter.PATH, required=True, description=description)
