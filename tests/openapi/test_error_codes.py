from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import UUID

import pytest
from django.db import transaction
from django.test import Client, override_settings

from core.errors import ApplicationError
from core.models import Project
from core.roles import Role
from tests.documents.references import DOCUMENTS, ROOT
from tests.factories.core import make_key, make_staff
from tests.fakes import scripted as play
from tests.fakes.scripted import ScriptedServer
from tests.gateway.conftest import LONG_TIMEOUTS
from tests.gateway.managed import make_prompt
from tests.gateway.service import Gateway, GatewayService
from tests.gateway.wire import bearer, body
from tests.openapi.conftest import Populated
from tests.openapi.error_codes import NOBODY, OTHERWISE, SECTIONS, UNKNOWN, Ask, Send, Way
from tests.openapi.test_successes import BODIES, OF_DJANGO, ask, filled
from tests.rights.conftest import person, signed_in

Row = tuple[str, str]


def documented() -> dict[Row, set[int]]:
    found: dict[Row, set[int]] = {}
    sections = re.split(r"^## (.+)$", (ROOT / "docs/errors.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    for section, text in zip(sections[1::2], sections[2::2], strict=True):
        for statuses, codes in re.findall(r"^\| (\d{3}[\d, ]*) \| ([^|]+) \|", text, re.MULTILINE):
            for code in re.findall(r"`(\w+)`", codes):
                found.setdefault((section, code), set()).update(map(int, statuses.split(", ")))
    return found


DOCUMENTED = documented()
WAYS: list[tuple[Row, Way]] = [
    ((section, code), way) for section, codes in SECTIONS.items() for code, ways in codes.items() for way in ways
]


def of(kind: type) -> list[Any]:
    chosen = [(row, way) for row, way in WAYS if isinstance(way, kind)]
    return [pytest.param(row, way, id=f"{row[1]}-{number}") for number, (row, way) in enumerate(chosen)]


def test_table__has_a_way_to_every_documented_code_and_to_no_other() -> None:
    by_path = {("Management API", code) for code in UNKNOWN.values()}

    assert {row for row, _ in WAYS} | by_path == DOCUMENTED.keys()


@pytest.mark.parametrize("page", [page for page in DOCUMENTS if page.name != "errors.md"], ids=lambda page: page.name)
def test_page__that_names_a_status_with_its_code__says_what_the_document_says(page: Path) -> None:
    statuses: dict[str, set[int]] = {}
    for (_, code), found in DOCUMENTED.items():
        statuses.setdefault(code, set()).update(found)

    named = re.findall(r"\b([45]\d\d) (?:`\w+_error`, )?`([a-z]+_\w+)(?<!_error)`", page.read_text(encoding="utf-8"))

    assert [(status, code) for status, code in named if int(status) not in statuses.get(code, set())] == []


@pytest.mark.parametrize(("row", "named"), of(str))
def test_code__of_a_scene_of_its_own__is_provoked_by_the_test_that_is_named(row: Row, named: str) -> None:
    file, _, function = named.partition("::")
    words = {row[1], *(one.__name__ for one in _errors(ApplicationError) if one.code == row[1])}

    source = _sources(ROOT / "tests" / file).get(function, "")

    assert words & set(re.findall(r"\w+", source)), f"{named} does not name {row[1]}"


def _errors(base: type[ApplicationError]) -> Iterator[type[ApplicationError]]:
    for one in base.__subclasses__():
        yield one
        yield from _errors(one)


@cache
def _sources(file: Path) -> dict[str, str]:
    text = file.read_text(encoding="utf-8")
    cases = file.with_suffix(".json")
    tables = json.loads(cases.read_bytes()) if cases.exists() else {}
    parts: dict[str, str] = {}
    for node in ast.parse(text).body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                parts[node.name] = "\n".join(ast.unparse(part) for part in (*node.decorator_list, node))
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                parts[name] = ast.unparse(node)
    for name in parts.keys() & tables.keys():
        parts[name] += json.dumps(tables[name])
    return {
        name: source + "".join(parts[word] for word in set(re.findall(r"\w+", source)) & parts.keys() - {name})
        for name, source in parts.items()
        if name.startswith("test_")
    }


@pytest.mark.parametrize(("row", "way"), of(Ask))
def test_management__what_provokes_a_code__answers_it(
    populated: Populated, offline: None, one_connection: None, row: Row, way: Ask
) -> None:
    project = Project.objects.get(pk=populated.known["project_id"])
    make_staff(name="newcomer")
    owner = Client(headers=populated.headers, raise_request_exception=False)
    for before in way.before:
        assert ask(owner, OF_DJANGO[before], populated.known).status_code < 300, before
    with ExitStack() as changed, override_settings(**way.settings):
        for name, value in way.patched.items():
            changed.enter_context(patch(name, value))
        answer = _asked(way, populated, project)

    error = json.loads(answer.content)["error"]
    assert error["code"] == row[1], error
    assert answer.status_code in DOCUMENTED[row]


def _asked(way: Ask, populated: Populated, project: Project) -> Any:
    headers = {**populated.headers, **way.headers}
    client = signed_in(person(way.who, project)) if way.who else Client(raise_request_exception=False)
    if way.scopes:
        headers["Authorization"] = f"Bearer {make_key(project, way.scopes)[1]}"
    elif way.who:
        headers["Authorization"] = ""
    operation = OF_DJANGO[way.operation]
    sent = BODIES.get(operation.id, {}) if way.body is None else way.body
    return client.generic(
        (way.method or operation.method).upper(),
        way.path or operation.path.format(**populated.known),
        sent if isinstance(sent, str) else json.dumps(filled(sent, populated.known)),
        content_type=way.content_type,
        headers={name: value for name, value in headers.items() if value},
        query_params=way.query,
    )


def _another(value: Any) -> Any:
    if isinstance(value, int):
        return 999_999_999
    try:
        UUID(str(value))
    except ValueError:
        return "nobodys"
    return NOBODY


# The export streams on an event loop, which WSGI does not have.
@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous iterators:Warning")
def test_management__path_to_what_is_not_there__answers_its_code(
    populated: Populated, offline: None, one_connection: None
) -> None:
    make_staff(Role.EDITOR, Project.objects.get(pk=populated.known["project_id"]), name="scorer")
    client = Client(headers=populated.headers, raise_request_exception=False)
    wrong = {}
    for operation in OF_DJANGO.values():
        for name in set(re.findall(r"{(\w+)}", operation.path)) - {"project_id"}:
            with transaction.atomic():
                answer = ask(client, operation, {**populated.known, name: _another(populated.known[name])})
                transaction.set_rollback(True)
            code = json.loads(answer.content)["error"]["code"] if answer.status_code >= 400 else ""
            expected = OTHERWISE.get((operation.id, name), (404, UNKNOWN[name]))
            if (answer.status_code, code) != expected:
                wrong[operation.id, name] = (answer.status_code, code)

    assert wrong == {}


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


@pytest.fixture(scope="module")
def served(upstream: ScriptedServer) -> Iterator[Gateway]:
    settings = {**LONG_TIMEOUTS, "GATEWAY_FILE_BYTES": "100000"}
    with GatewayService(workers=1, settings=settings) as service:
        urls = {name: upstream.base_url("vendor") for name in ("openai", "anthropic")}
        gateway = service.new_project(base_urls=urls, routing={"retry_enabled": False})
        variables = [{"name": "who", "type": "string", "required": True}]
        make_prompt(gateway, "Greet {{ who }}.", name="support", variables=variables)
        style = make_prompt(gateway, "Be calm.", name="style")
        style.label("calm", 1)
        make_prompt(gateway, "", name="broken", messages=[{"prompt": "style@calm"}, *body()["messages"]])
        path = f"prompts/configs/{style.config_id}/labels/calm"
        assert gateway.manage("DELETE", path).status_code == 204
        yield gateway
        assert "Traceback" not in service.log.read_text(errors="replace")


@pytest.mark.parametrize(("row", "way"), of(Send))
def test_gateway__what_provokes_a_code__answers_it(
    served: Gateway, upstream: ScriptedServer, row: Row, way: Send
) -> None:
    status, error = way.vendor or (500, {})
    upstream.play("vendor", play.raw(status, json.dumps({"error": error}).encode()))
    key = served.service.make_key(served.project_id, scopes=[*way.scopes])
    sent = way.fields if isinstance(way.fields, str) else json.dumps(body(**way.fields))
    headers = {name: value for name, value in {**bearer(key), **way.headers}.items() if value}

    answer = served.client.request(way.method, way.path, content=sent, headers=headers)

    found = answer.json()["error"]
    assert found["code"] == row[1], found
    assert answer.status_code in DOCUMENTED[row]
