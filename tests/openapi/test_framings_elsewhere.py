"""A body means the same in every framing of HTTP on the paths that Django does not serve, and in the admin's forms."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import Client

from core.models import ApiKey, Project
from core.openapi.views import document
from tests.fakes.scripted import ScriptedServer, answer
from tests.gateway.conftest import LONG_TIMEOUTS
from tests.gateway.service import Gateway, GatewayService
from tests.night import cases
from tests.openapi.schemas import example
from tests.openapi.test_framings import MEGABYTE, Operation, answered, bodied
from tests.waiting import TIMEOUT_SECONDS

_BOUNDARY = "a-boundary"
_KNOWN = {"model": "gpt-4o-mini", "stream": False, "messages": [{"role": "user", "content": "hi"}], "message": "hi"}


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes

    @property
    def code(self) -> str:
        if self.status < 400:
            return ""
        error = json.loads(self.body)["error"]
        # Google's form of an error has the status there, and the gateway's code in a list of details.
        is_googles = isinstance(error.get("details"), list)
        return str(error["details"][0]["metadata"]["code"] if is_googles else error["code"])


OPERATIONS = bodied(by_django=False)
# By day: a conversation, a form, and a call of the agent.
PADDED = cases(
    OPERATIONS,
    by_day=[
        ("post", "/api/gateway/v1/chat/completions"),
        ("post", "/api/gateway/v1/audio/transcriptions"),
        ("post", "/api/agent/chat"),
    ],
)


def form(fields: dict[str, str]) -> tuple[bytes, str]:
    head = f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="'
    parts = [f'{head}{name}"\r\n\r\n{value}\r\n' for name, value in fields.items()]
    return "".join([*parts, f"--{_BOUNDARY}--\r\n"]).encode(), f"multipart/form-data; boundary={_BOUNDARY}"


def body_of(operation: Operation) -> tuple[bytes, str]:
    method, path = operation
    content = document()["paths"].get(path, {}).get(method, {}).get("requestBody", {}).get("content", {})
    if "multipart/form-data" in content:
        return form({"model": "gpt-4o-mini"})
    if path == "/api/agent/mcp":
        return b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}', "application/json"
    return json.dumps(example(content["application/json"]["schema"], _KNOWN)).encode(), "application/json"


@pytest.fixture(scope="module")
def gateway() -> Iterator[Gateway]:
    with ScriptedServer() as upstream, GatewayService(workers=1, settings=LONG_TIMEOUTS) as service:
        upstream.play("plain", answer())
        yield service.new_project(
            base_urls=dict.fromkeys(("openai", "anthropic"), upstream.base_url("plain")),
            routing={"agent_model": "openai/gpt-4o"},
        )
        assert "Traceback" not in service.log.read_text(errors="replace")


def sent(gateway: Gateway, operation: Operation, body: bytes, *, chunked: bool, coding: str = "") -> Answer:
    method, path = operation
    headers = {
        "authorization": f"Bearer {gateway.key}",
        "x-project-id": gateway.project_id,
        "content-type": body_of(operation)[1],
        "accept": "application/json, text/event-stream",
        **({"content-encoding": coding} if coding else {}),
        **({"transfer-encoding": "chunked"} if chunked else {"content-length": str(len(body))}),
    }
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=TIMEOUT_SECONDS)
    pieces: Any = iter([body[:5], body[5:]]) if chunked and body else iter(()) if chunked else body
    connection.request(method.upper(), re.sub(r"{\w+}", "some", path), pieces, headers, encode_chunked=chunked)
    response = connection.getresponse()
    found = Answer(response.status, response.read())
    connection.close()
    return found


@pytest.mark.parametrize("operation", OPERATIONS, ids=" ".join)
def test_body__in_chunks__is_the_same_request(gateway: Gateway, operation: Operation) -> None:
    body = body_of(operation)[0]
    padded = [body.ljust(3 * MEGABYTE)] if operation in PADDED else []
    for given in (body, *padded, b""):
        plain, chunked = (sent(gateway, operation, given, chunked=chunked) for chunked in (False, True))

        assert (plain.status, plain.code) == (chunked.status, chunked.code)
        # The provider answers every call with a chat completion, which is no answer to an embedding.
        assert plain.status < 500 or plain.code == "provider_error"


@pytest.mark.parametrize("operation", OPERATIONS, ids=" ".join)
def test_body__empty__is_an_error_of_the_client_unless_nothing_is_needed(
    gateway: Gateway, operation: Operation
) -> None:
    method, path = operation
    described = document()["paths"].get(path, {}).get(method, {}).get("requestBody", {"required": True})
    empty = sent(gateway, operation, b"", chunked=True)

    if described.get("required", False):
        assert empty.status == 400
        assert b"json" in empty.body.lower() or "application/json" not in body_of(operation)[1]
    else:
        assert empty.status == sent(gateway, operation, b"{}", chunked=True).status


@pytest.mark.parametrize("operation", OPERATIONS, ids=" ".join)
def test_body__compressed__is_refused_by_name(gateway: Gateway, operation: Operation) -> None:
    for chunked in (False, True):
        refused = sent(gateway, operation, b"\x1f\x8b anything", chunked=chunked, coding="gzip")

        # The gateway's own code for it is older than the management API's.
        assert (refused.status, refused.code) in ((400, "invalid_value"), (415, "unsupported_media_type"))
        assert (refused.status == 400) is operation[1].startswith("/api/gateway/")
        assert b"content-encoding" in refused.body.lower()


@pytest.mark.parametrize("operation", [("post", "/api/agent/chat"), ("post", "/api/llm/prompts/{name}/render")])
def test_body__above_the_limit_of_the_management_api__is_refused_with_it(
    gateway: Gateway, operation: Operation
) -> None:
    for chunked in (False, True):
        refused = sent(gateway, operation, b" " * (8 * MEGABYTE + 1), chunked=chunked)

        assert (refused.status, refused.code) == (413, "body_too_large")
        assert str(8 * MEGABYTE).encode() in refused.body


@pytest.fixture
def session(db: None, one_connection: None, django_user_model: type[User]) -> dict[str, str]:
    Project.objects.create(name="of the forms")
    client = Client()
    client.force_login(django_user_model.objects.create_superuser("ada", password="long enough"))
    token = "a" * 32
    return {
        "host": "localhost",
        "accept": "text/html",
        "cookie": f"sessionid={client.cookies['sessionid'].value}; csrftoken={token}",
    }


@pytest.mark.parametrize("multipart", [False, True])
@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("padding", [0, 3 * MEGABYTE])
def test_form_of_the_admin__in_any_framing__is_read(
    session: dict[str, str], multipart: bool, chunked: bool, padding: int
) -> None:
    """A long field beside those of the form is ignored, and its bytes count."""
    fields = {"csrfmiddlewaretoken": "a" * 32, "name": "my app", "scopes": "gateway", "metadata": ""}
    status, page = _posted(session, {**fields, "padding": "x" * padding}, multipart=multipart, chunked=chunked)

    assert status == 200, page
    assert list(ApiKey.objects.values_list("name", "scopes")) == [("my app", ["gateway"])]


@pytest.mark.parametrize("chunked", [False, True])
def test_form_of_the_admin__above_the_limit__is_a_page_that_says_so(
    session: dict[str, str], chunked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[BaseDatabaseWrapper] = []
    connect = BaseDatabaseWrapper.connect

    def watched(wrapper: BaseDatabaseWrapper) -> None:
        opened.append(wrapper)
        connect(wrapper)

    monkeypatch.setattr(BaseDatabaseWrapper, "connect", watched)
    fields = {"csrfmiddlewaretoken": "a" * 32, "name": "x" * (8 * MEGABYTE)}
    status, page = _posted(session, fields, multipart=False, chunked=chunked)

    assert status == 413
    assert str(8 * MEGABYTE) in page and "<html" in page
    # Django makes this page in a thread without an end of a request.
    others = [wrapper for wrapper in opened if wrapper is not connections["default"]]
    assert others and not any(wrapper.connection for wrapper in others)


def _posted(session: dict[str, str], fields: dict[str, str], *, multipart: bool, chunked: bool) -> tuple[int, str]:
    body, media_type = form(fields) if multipart else (urlencode(fields).encode(), "application/x-www-form-urlencoded")
    framing = {"transfer-encoding": "chunked"} if chunked else {"content-length": str(len(body))}
    headers = {**session, "content-type": media_type, **framing}
    status, page = async_to_sync(answered)("POST", "/admin/keys/api/", headers, body)
    return status, page.decode()
