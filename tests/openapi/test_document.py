"""The OpenAPI document lists all operations and no others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.urls import URLPattern, URLResolver, get_resolver

from agent.routing import http_urlpatterns as agent_urlpatterns
from core.openapi.views import document
from gateway.routing import RESERVED_PATHS, http_urlpatterns
from prompts.services import RESERVED_NAMES

_METHODS = {"get", "post", "put", "patch", "delete"}
_OWN = {"/api/schema/", "/api/docs/", "/api/redoc/", "/api/redoc/script.js"}
_OF_CHANNELS = {
    "api/gateway/v1/chat/completions": "post",
    "api/gateway/v1/models": "get",
    "api/gateway/v1/models/{model}": "get",
    "api/agent/chat": "post",
    "api/llm/prompts/{name}": "get",
    "api/llm/prompts/{name}/render": "post",
}
# The MCP endpoint is JSON-RPC, which describes itself by `tools/list`.
_OTHERWISE_DESCRIBED = {
    "api/agent/mcp",
    # The documents of OpenAI and Anthropic describe these client protocols.
    "api/gateway/v1/responses",
    "api/gateway/v1/responses/[/]+",
    "api/gateway/v1/messages",
    "api/gateway/v1/messages/count_tokens",
    "api/gateway/v1/completions",
    "api/gateway/v1/audio/transcriptions",
    "api/gateway/v1/embeddings",
    "api/gateway/v1/moderations",
    "api/gateway/v1/rerank",
    "api/gateway/v1/images/generations",
    "api/gateway/v1/audio/speech",
    # The same operation as `api/llm/prompts/{name}`, for names that are no path.
    "api/llm/prompts",
}
_PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in document()["paths"].items():
        for method, operation in item.items():
            assert method in _METHODS
            yield path, method, operation


def served() -> set[tuple[str, str]]:
    """Returns every path under `/api/` with its methods, from Django's and Channels' routes."""
    found = {pair for pair in _served(get_resolver().url_patterns, "/") if pair[0].startswith("/api/")}
    for pattern in (*http_urlpatterns, *agent_urlpatterns):
        # Clients may double the version and its slashes, which the document does not show.
        path = str(pattern.pattern).replace("/+v1/+(?:v1/+)?", "/v1/").replace("(?P<model>.+?)", "{model}")
        path = path.replace(f"(?!{RESERVED_PATHS})(?P<name>.+)", "{name}")
        path = re.sub(r"[\^$]|/\?", "", path)
        if path.startswith(("api/gateway/v1/", "api/agent/", "api/llm/")) and path not in _OTHERWISE_DESCRIBED:
            found.add((f"/{path}", _OF_CHANNELS[path]))
    return {(path, method) for path, method in found if path not in _OWN}


def _served(patterns: list[Any], prefix: str) -> Iterator[tuple[str, str]]:
    for pattern in patterns:
        path = f"{prefix}{pattern.pattern}"
        if isinstance(pattern, URLResolver):
            yield from _served(pattern.url_patterns, path)
        elif isinstance(pattern, URLPattern) and path.startswith("/api/"):
            path = _PARAMETER.sub(r"{\1}", re.sub(r"[\^$]|/\?", "", path))
            yield from ((path, method) for method in _methods(pattern))


def _methods(pattern: URLPattern) -> set[str]:
    callback: Any = pattern.callback
    if hasattr(callback, "actions"):
        return set(callback.actions) & _METHODS
    if hasattr(callback, "cls"):
        return {method for method in _METHODS if hasattr(callback.cls, method)}
    return {"post"}  # The handler is an OTLP view.


def test_paths__of_the_routes__are_those_of_the_document() -> None:
    assert {(path, method) for path, method, _ in operations()} == served()


def test_prompts__paths_of_the_management_api__are_no_names_of_prompts() -> None:
    below = "/api/llm/prompts/"
    paths = {path.removeprefix(below).partition("/")[0] for path, _, _ in operations() if path.startswith(below)}

    assert paths - {"{name}"} <= set(RESERVED_NAMES), "Channels would take the paths for names of prompts"


def test_document__as_a_whole__is_valid_and_says_everything(tmp_path: Path) -> None:
    call_command("spectacular", "--validate", "--fail-on-warn", "--file", str(tmp_path / "openapi.yaml"))

    assert document()["openapi"].startswith("3.1.")


def test_operations__all__say_who_what_and_how() -> None:
    for path, method, operation in operations():
        at = f"{method} {path}"
        assert re.fullmatch(r"[a-z][A-Za-z]+", operation["operationId"]), at
        assert operation["summary"] and len(operation["summary"]) < 70, at
        assert len(operation["tags"]) == 1, at
        assert operation["security"] and all(operation["security"]), at


def test_operations__ids__differ() -> None:
    ids = [operation["operationId"] for _, _, operation in operations()]

    assert len(set(ids)) == len(ids)


def test_operations__failures__are_the_envelope() -> None:
    for path, method, operation in operations():
        failures = {status: answer for status, answer in operation["responses"].items() if status[0] in "45"}
        assert {"401", "503"} <= set(failures), f"{method} {path}"
        shape = "ExportFailure" if path.startswith("/api/otlp/") else "ErrorBody"
        for status, answer in failures.items():
            assert answer["description"], f"{method} {path} {status}"
            schema = answer["content"]["application/json"]["schema"]
            assert schema == {"$ref": f"#/components/schemas/{shape}"}, f"{method} {path} {status}"


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


def test_completions__limits_checked_after_decoding__are_documented() -> None:
    fields = document()["components"]["schemas"]["ChatCompletionRequest"]["properties"]

    assert {"minItems": 1, "maxItems": 1000}.items() <= fields["messages"].items()
    assert [choice["maxItems"] for choice in fields["models"]["anyOf"] if choice["type"] == "array"] == [5]


def test_completions__answer__is_json_or_a_stream() -> None:
    operation = document()["paths"]["/api/gateway/v1/chat/completions"]["post"]

    assert set(operation["responses"]["200"]["content"]) == {"application/json", "text/event-stream"}
    assert {"x-svc-provider", "x-svc-model-used", "x-request-id"} <= set(operation["responses"]["200"]["headers"])
    assert {"400", "401", "404", "422", "429", "500", "503"} <= set(operation["responses"])
