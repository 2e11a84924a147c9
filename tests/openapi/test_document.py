from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management import call_command

from analytics.telemetry.operation_names import ROOT
from config.asgi import router
from core.openapi.views import document
from core.roles import Right
from gateway.consumers import SURFACES
from gateway.surfaces.gemini.address import METHODS
from prompts.services import RESERVED_NAMES
from tests.openapi.routes import channels_paths, django_routes, operations

# The shapes of errors by the beginnings of paths, where a client protocol has its own; the longest beginning counts.
_ERRORS = {
    "": {"ErrorBody"},
    "/api/otlp/": {"ExportFailure"},
    "/api/gateway/v1/messages": {"MessagesErrorBody"},
    "/api/gateway/v1/models": {"ErrorBody", "MessagesErrorBody", "GoogleErrorBody"},
    "/api/gateway/v1beta/": {"GoogleErrorBody"},
    "/api/agent/mcp": {"ErrorBody", "McpAnswer"},
    "/readyz": {"Readiness"},
}


def test_paths__that_django_routes__are_those_of_the_document() -> None:
    described = {(path, method) for path, method, _ in operations() if path not in channels_paths()}

    assert described == django_routes()


def test_paths__that_channels_routes__are_all_in_the_document() -> None:
    """`test_gateway_conformance.py` has their methods."""
    assert channels_paths() <= set(document()["paths"])


def test_paths__handed_to_the_gateway_without_a_router__are_in_the_document() -> None:
    paths = {re.sub(r"/v1/v1/", "/v1/", path.decode()).removesuffix("/") for path in router.direct}

    assert paths <= channels_paths()


def test_prompts__paths_of_the_management_api__are_no_names_of_prompts() -> None:
    below = "/api/llm/prompts/"
    paths = {path.removeprefix(below).partition("/")[0] for path, _, _ in operations() if path.startswith(below)}

    assert paths - {"{name}"} <= set(RESERVED_NAMES), "Channels would take the paths for names of prompts"


def test_document__as_a_whole__is_valid_and_says_everything(tmp_path: Path) -> None:
    call_command("spectacular", "--validate", "--fail-on-warn", "--file", str(tmp_path / "openapi.yaml"))

    assert document()["openapi"].startswith("3.1.")


def test_operations__all__say_who_what_and_how() -> None:
    for operation in operations():
        path, method, described = operation
        at = f"{method} {path}"
        assert re.fullmatch(r"[a-z][A-Za-z]+", operation.id), at
        assert described["summary"] and len(described["summary"]) < 70, at
        assert len(described["tags"]) == 1, at
        assert described["security"], at
        assert ({} in described["security"]) is (operation.right is Right.OPEN), at


def test_operations__ids__differ() -> None:
    ids = [operation.id for operation in operations()]

    assert len(set(ids)) == len(ids)


def test_operations__failures__are_the_envelope() -> None:
    for operation in operations():
        path, method, described = operation
        failures = {status: answer for status, answer in described["responses"].items() if status[0] in "45"}
        assert operation.right is Right.OPEN or {"401", "503"} <= set(failures), f"{method} {path}"
        shapes = _ERRORS[max((start for start in _ERRORS if path.startswith(start)), key=len)]
        for status, answer in failures.items():
            assert answer["description"], f"{method} {path} {status}"
            schema = answer["content"]["application/json"]["schema"]
            named = {choice["$ref"].rpartition("/")[2] for choice in schema.get("anyOf", [schema])}
            assert named == shapes, f"{method} {path} {status}"


def test_lists__of_every_operation__have_the_fields_that_all_have() -> None:
    lists = {
        name: schema["properties"]
        for name, schema in document()["components"]["schemas"].items()
        if {"count", "next", "results"} <= schema.get("properties", {}).keys()
    }
    assert len(lists) > 20
    wrong = [
        (name, link)
        for name, fields in lists.items()
        for link in ("next", "previous")
        if set(fields.get(link, {}).get("type", ())) != {"string", "null"}
    ]
    assert wrong == []


def test_operations__path_parameters__are_described() -> None:
    for path, method, operation in operations():
        named = {item["name"] for item in operation.get("parameters", []) if item["in"] == "path"}
        assert named == set(re.findall(r"{(\w+)}", path)), f"{method} {path}"


def test_operations__about_one_thing__may_not_find_it() -> None:
    for path, method, operation in operations():
        assert "404" in operation["responses"] or "{" not in path, f"{method} {path}"


def test_tags__of_operations__are_explained() -> None:
    explained = {tag["name"] for tag in document()["tags"] if tag["description"]}

    assert {tag for _, _, operation in operations() for tag in operation["tags"]} == explained


def test_references__all__lead_somewhere() -> None:
    for reference in set(_references(document())):
        found: Any = document()
        for step in reference.removeprefix("#/").split("/"):
            found = found[step]


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for item in value.values():
            yield from _references(item)
    elif isinstance(value, list):
        for item in value:
            yield from _references(item)


def test_gateway__calls_of_models__link_the_vendors_page_and_name_the_fields_of_the_gateway() -> None:
    stored = (f"{ROOT}files", f"{ROOT}batches", f"{ROOT}messages/batches")
    asking = [
        one
        for one in operations()
        if one.path.startswith("/api/gateway/") and one.method == "post" and not one.path.startswith(stored)
    ]

    assert len(asking) == len(SURFACES) + len(METHODS)
    for path, _, described in asking:
        assert described["externalDocs"]["url"].startswith("https://"), path
        headers = {item["name"] for item in described["parameters"] if item["in"] == "header"}
        assert {"x-svc-session-id", "x-svc-user-id", "Cache-Control"} <= headers, path
        assert {"x-svc-provider", "x-svc-model-used", "x-request-id"} <= set(described["responses"]["200"]["headers"])
        (body,) = described["requestBody"]["content"].values()
        fields = set(_fields(body["schema"]))
        assert "model" in fields or "{model}" in path
        # A form cannot have them.
        assert {"models", "provider", "prompt_config"} <= fields or path.endswith("/transcriptions"), path


def _fields(schema: dict[str, Any]) -> dict[str, Any]:
    named = schema.get("$ref", "").rpartition("/")[2]
    fields: dict[str, Any] = document()["components"]["schemas"].get(named, schema)["properties"]
    return fields


def test_completions__limits_checked_after_decoding__are_documented() -> None:
    fields = document()["components"]["schemas"]["ChatCompletionRequest"]["properties"]

    assert {"minItems": 1, "maxItems": 1000}.items() <= fields["messages"].items()
    assert [choice["maxItems"] for choice in fields["models"]["anyOf"] if choice["type"] == "array"] == [5]


def test_completions__answer__is_json_or_a_stream() -> None:
    operation = document()["paths"]["/api/gateway/v1/chat/completions"]["post"]

    assert set(operation["responses"]["200"]["content"]) == {"application/json", "text/event-stream"}
    assert {"x-svc-provider", "x-svc-model-used", "x-request-id"} <= set(operation["responses"]["200"]["headers"])
    assert {"400", "401", "404", "422", "429", "500", "503"} <= set(operation["responses"])
