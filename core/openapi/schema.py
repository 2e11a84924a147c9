from __future__ import annotations

import inspect
from typing import Any

from drf_spectacular.openapi import AutoSchema

from core.openapi.document import MANAGEMENT_SECURITY, REQUEST_ID
from core.openapi.operations import query_of, requires_body
from core.wire.serializers import StrictSerializer

_TAGS: dict[tuple[str, ...], str] = {("prompts", "rollouts"): "rollouts", ("projects", "sessions"): "telemetry"}
# The OpenAPI generator's schema of a field of any JSON that may be null. Null fits both, so that `oneOf` refuses it.
_ANYTHING_OR_NULL: list[dict[str, Any]] = [{}, {"type": "null"}]


class ManagementSchema(AutoSchema):
    _is_answering = False

    def get_auth(self) -> list[dict[str, Any]]:
        return MANAGEMENT_SECURITY

    def get_tags(self) -> list[str]:
        words = [word for word in self._tokenize_path() if word != "llm"]
        return [_TAGS.get(tuple(words[:2]), words[0])]

    def get_description(self, *_: Any) -> str:
        return inspect.getdoc(self._action()) or ""

    def get_operation(self, *args: Any, **kwargs: Any) -> dict[str, Any] | None:
        described = super().get_operation(*args, **kwargs)
        if described is not None:
            if "requestBody" in described:
                described["requestBody"]["required"] = requires_body(self._action(), self.method)
            for response in described["responses"].values():
                response["headers"] = REQUEST_ID
        return described

    def _get_response_for_code(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        self._is_answering = True
        found: dict[str, Any] = super()._get_response_for_code(*args, **kwargs)  # type: ignore[no-untyped-call]  # of the package
        self._is_answering = False
        return found

    def _map_basic_serializer(self, serializer: Any, direction: Any) -> dict[str, Any]:
        described: dict[str, Any] = super()._map_basic_serializer(serializer, direction)  # type: ignore[no-untyped-call]  # of the package
        if isinstance(serializer, StrictSerializer) and not serializer.written_back:
            described["additionalProperties"] = False
        return described

    def _insert_field_validators(self, field: Any, schema: dict[str, Any]) -> None:
        super()._insert_field_validators(field, schema)  # type: ignore[no-untyped-call]  # of the package
        choices = schema.pop("oneOf", None)
        if choices is None or choices == _ANYTHING_OR_NULL:
            return
        # A text of some format, or an empty one. A format does not exclude the empty text, so that it fits both.
        schema["anyOf"] = choices
        if "default" in choices[0]:
            schema["default"] = choices[0].pop("default")

    def _is_list_view(self, serializer: Any = None) -> bool:
        # The OpenAPI generator would wrap the list envelope that `operation` has made in a second one.
        return not self._is_answering and super()._is_list_view(serializer)

    def _action(self) -> Any:
        view: Any = self.view
        return getattr(view, view.action, None)

    def get_filter_backends(self) -> list[Any]:
        # The OpenAPI generator does not recognise some lists, and would leave out their filters.
        query = query_of(self._action())
        is_filtered = query is not None and query.is_list and getattr(self.view, "filterset_class", None) is not None
        return list(getattr(self.view, "filter_backends", ())) if is_filtered else []

    def _get_filter_parameters(self) -> list[dict[str, Any]]:
        filters = getattr(self.view, "filterset_class", None)
        if filters is not None:
            # The OpenAPI generator finds the model by this queryset; the view's own one needs a project.
            self.view.queryset = filters._meta.model._default_manager.none()  # type: ignore[attr-defined]  # views of lists have it
        found: list[dict[str, Any]] = super()._get_filter_parameters()  # type: ignore[no-untyped-call]  # of the package
        return found
