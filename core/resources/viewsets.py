from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from core.api.viewsets import ProjectViewSet
from core.openapi import PAGE, operation
from core.resources.declaration import Resource

# An action, its statuses, and its other arguments of `core.openapi.operation`.
Described = tuple[Callable[..., Response], Sequence[int], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Operation:
    summary: str
    description: str = ""
    errors: Sequence[int] | None = None


class ResourceViewSet(ProjectViewSet):
    """Has the operations that `operations` names, by the action: `list`, `create`, `retrieve`, `partial_update` (PATCH)
    or `update` (PUT), and `destroy`. A subclass may write an action itself instead.

    `shown` is the serializer of answers, `new` and `changed` those of bodies. The ids of operations end with `noun`.
    """

    noun: ClassVar[str]
    resource: ClassVar[Resource[Any]]
    shown: ClassVar[type[BaseSerializer[Any]]]
    new: ClassVar[type[BaseSerializer[Any]]]
    changed: ClassVar[type[BaseSerializer[Any]]]
    operations: ClassVar[Mapping[str, Operation]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for action, words in cls.operations.items():
            verb, make = _ACTIONS[action]
            handler, errors, shapes = make(cls)
            handler.__doc__ = words.description
            failures = errors if words.errors is None else words.errors
            described = operation(verb.format(cls.noun), words.summary, errors=failures, **shapes)
            setattr(cls, action, described(handler))

    @property
    def row_key(self) -> Any:
        return self.kwargs[self.lookup_url_kwarg or ""]

    def answer(self, row: Any, code: int = status.HTTP_200_OK) -> Response:
        return Response(self.shown(row).data, status=code)


def _list(cls: type[ResourceViewSet]) -> Described:
    def handler(view: ResourceViewSet, request: Request, **path: Any) -> Response:
        return view.page(view.resource.rows(view.project_id), view.shown)

    return handler, (), {"query": [PAGE], "page": cls.shown}


def _create(cls: type[ResourceViewSet]) -> Described:
    def handler(view: ResourceViewSet, request: Request, **path: Any) -> Response:
        given = view.valid_body(view.new).validated_data
        return view.answer(view.resource.create(view.project_id, given, actor=view.actor), status.HTTP_201_CREATED)

    return handler, (409,), {"body": cls.new, "answer": cls.shown, "status": status.HTTP_201_CREATED}


def _retrieve(cls: type[ResourceViewSet]) -> Described:
    def handler(view: ResourceViewSet, request: Request, **path: Any) -> Response:
        return view.answer(view.resource.get(view.project_id, view.row_key))

    return handler, (404,), {"answer": cls.shown}


def _change(cls: type[ResourceViewSet]) -> Described:
    def handler(view: ResourceViewSet, request: Request, **path: Any) -> Response:
        given = view.valid_body(view.changed).validated_data
        return view.answer(view.resource.change(view.project_id, view.row_key, given, actor=view.actor))

    return handler, (404, 409), {"body": cls.changed, "answer": cls.shown}


def _destroy(cls: type[ResourceViewSet]) -> Described:
    def handler(view: ResourceViewSet, request: Request, **path: Any) -> Response:
        view.resource.remove(view.project_id, view.row_key, actor=view.actor)
        return Response(status=status.HTTP_204_NO_CONTENT)

    return handler, (404,), {"status": status.HTTP_204_NO_CONTENT}


_ACTIONS: Mapping[str, tuple[str, Callable[[type[ResourceViewSet]], Described]]] = {
    "list": ("list{}s", _list),
    "create": ("create{}", _create),
    "retrieve": ("get{}", _retrieve),
    "partial_update": ("change{}", _change),
    "update": ("replace{}", _change),
    "destroy": ("delete{}", _destroy),
}
