"""The check of an answer against the OpenAPI document, which every client of the suite makes of every answer.

An answer must have a status and a media type that the document names for its operation, and JSON of their schema. A
schema's `format` is an assertion for some validators and a comment for others: an answer must fit both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from unittest.mock import patch
from urllib.parse import quote

from django.test import Client
from jsonschema_rs import Draft202012, Draft202012Validator, Registry

_PARAMETER = re.compile(r"{\w+}")
_DJANGOS_PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")
_BODILESS = (204, 202, 304)
_DOCUMENT = "urn:openapi"


@cache
def document() -> dict[str, Any]:
    # The import needs Django's settings, which a program that only starts a service does not have.
    from core.openapi.views import document as described

    found: dict[str, Any] = described()
    return found


def check(path: str, method: str, status: int, media_type: str, body: bytes | None) -> None:
    """Raises AssertionError for an answer that the operation does not have; other paths pass.

    `path` is the document's, `media_type` the whole content type, and `body` None if it is not to be checked.
    """
    operation = document()["paths"].get(path, {}).get(method.lower())
    if operation is None:
        return
    at = f"{method} {path} answered {status}"
    described = operation["responses"].get(str(status))
    assert described is not None, f"{at}, and the document has {', '.join(operation['responses'])} for it: {body!r}"
    known = {_essence(name): name for name in described.get("content", {})}
    if status in _BODILESS and not body:
        return
    assert _essence(media_type) in known, f"{at} with {media_type!r}, and the document has {sorted(known)}"
    if body is None:
        return
    name = known[_essence(media_type)]
    if _essence(media_type) == "application/json":
        _check_value(_validators(path, method.lower(), str(status), name, "schema"), json.loads(body), at)
    elif _essence(media_type) == "text/event-stream" and "x-event-schema" in described["content"][name]:
        for event in _events(body):
            _check_value(_validators(path, method.lower(), str(status), name, "x-event-schema"), event, at)


def operation_path(raw_path: str) -> str:
    raw_path = re.sub(r"/{2,}", "/", raw_path.partition("?")[0])
    raw_path = raw_path.replace("/v1/v1/", "/v1/").removesuffix("/")
    return next((path for pattern, path in _patterns() if pattern.fullmatch(raw_path)), "")


@contextmanager
def clients_checked() -> Iterator[None]:
    request = Client.request

    def checked(self: Client, **sent: Any) -> Any:
        answer = request(self, **sent)
        _check_djangos(answer)
        return answer

    with patch.object(Client, "request", checked):
        yield


def _check_djangos(answer: Any) -> None:
    # The route tells a slash in an id from one of the path, which the decoded path does not. None was found: no route.
    request = answer.wsgi_request
    found = request.resolver_match
    if found is not None and found.route.startswith("api/"):
        path = _DJANGOS_PARAMETER.sub(r"{\1}", f"/{found.route}")
        body = None if answer.streaming else answer.content
        check(path, request.method, answer.status_code, answer.get("Content-Type", ""), body)


def _essence(media_type: str) -> str:
    return media_type.partition(";")[0].strip().lower()


@cache
def _patterns() -> list[tuple[re.Pattern[str], str]]:
    paths = sorted(document()["paths"], key=lambda path: (-path.count("/"), path.count("{")))
    strict = [(re.compile(_pattern(path, "[^/]+")), path) for path in paths]
    return strict + [(re.compile(_pattern(path, ".+")), path) for path in paths]


def _pattern(path: str, parameter: str) -> str:
    return parameter.join(re.escape(word) for word in _PARAMETER.split(path))


@cache
def _validators(path: str, method: str, status: str, media_type: str, name: str) -> list[Draft202012Validator]:
    words = ("paths", path, method, "responses", status, "content", media_type, name)
    pointer = "/".join(quote(word.replace("~", "~0").replace("/", "~1")) for word in words)
    schema = {"$ref": f"{_DOCUMENT}#/{pointer}"}
    return [Draft202012Validator(schema, registry=_registry(), validate_formats=asserted) for asserted in (True, False)]


@cache
def _registry() -> Registry:
    """The validators share one document: a copy takes 3 MB, and a unit of the suite makes hundreds of validators."""
    return Registry([(_DOCUMENT, document())], draft=Draft202012)


def _check_value(validators: list[Draft202012Validator], value: Any, at: str) -> None:
    for validator in validators:
        problems = [f"{list(problem.instance_path)}: {problem.message}" for problem in validator.iter_errors(value)]
        assert not problems, f"{at} with what the document does not describe: {problems[:5]}"


def _events(body: bytes) -> Iterator[Any]:
    """Leaves out the `[DONE]` that ends the events, and the errors that break them off."""
    for line in body.decode().splitlines():
        data = line.removeprefix("data:").strip()
        if line.startswith("data:") and data.startswith("{"):
            event = json.loads(data)
            if "error" not in event:
                yield event
