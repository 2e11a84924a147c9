from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from core.openapi.document import REQUEST_ID
from core.openapi.failures import ERRORS, ErrorBody
from core.openapi.operations import JSON
from core.openapi.shapes import any_of


def failures(
    statuses: Iterable[int], descriptions: Mapping[int, str], shapes: tuple[Any, ...] = (ErrorBody,)
) -> dict[str, Any]:
    return {
        str(status): {
            "description": descriptions.get(status) or ERRORS[status],
            "headers": REQUEST_ID,
            "content": {JSON: {"schema": any_of(*shapes)}},
        }
        for status in statuses
    }


def optional_parameter(name: str, description: str, place: str = "header", **schema: Any) -> dict[str, Any]:
    return {
        "name": name,
        "in": place,
        "required": False,
        "description": description,
        "schema": {"type": "string", **schema},
    }
