"""Answers of the service's doubles. Each is checked against the OpenAPI document, whose minimum fills in what a test
does not state."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tests.described import check, operation_path
from tests.openapi.schemas import example

JSON = "application/json"


@dataclass(frozen=True)
class Answered:
    method: str
    path: str
    status: int
    body: bytes


def entry(schema: str, **stated: Any) -> dict[str, Any]:
    return {**example({"$ref": f"#/components/schemas/{schema}"}, {}), **stated}


def failure(message: str, code: str, kind: str) -> dict[str, Any]:
    return {"error": entry("Failure", message=message, code=code, type=kind)}


def page(results: list[Any]) -> dict[str, Any]:
    return {"count": len(results), "next": None, "previous": None, "results": results}


def check_all(answers: Iterable[Answered]) -> None:
    for one in answers:
        path = operation_path(one.path)
        assert path, f"{one.method} {one.path} is no operation of the document"
        check(path, one.method, one.status, JSON, one.body)
