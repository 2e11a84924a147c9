from __future__ import annotations

import json
import uuid
from typing import Any
from urllib.parse import quote

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agent.panel.admin import MAX_TEXTS
from agent.panel.markdown import CHARACTERS
from core.models import Project
from core.roles import Role
from tests.factories.core import make_project, make_staff
from tests.factories.prompts import make_config
from tests.tables.cases import tabled

PAGE, RENDERED = "/admin/agent/panel/", "/admin/agent/panel/rendered/"


def signed_in(role: Role, project: Project) -> Client:
    client = Client()
    client.force_login(make_staff(role, project))
    return client


@pytest.fixture
def client(project: Project) -> Client:
    return signed_in(Role.READER, project)


def render(client: Client, body: Any) -> Any:
    return client.post(RENDERED, body if isinstance(body, bytes) else json.dumps(body), content_type="application/json")


def origin(client: Client, path: str) -> Any:
    response = client.get(f"{PAGE}?from={quote(path, safe='')}")
    assert response.status_code == 200
    return response.context["origin"]


def test_render__texts__are_html_in_their_order(client: Client) -> None:
    response = render(client, {"texts": ["*a*", "", "<b>"]})
    assert response.json() == {"html": ["<p><em>a</em></p>\n", "", "<p>&lt;b&gt;</p>\n"]}


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"\xff", b"[" * 100_000, {}, [], {"texts": "a"}, {"texts": [1]}, {"texts": [], "more": 1},
        {"texts": ["a"] * (MAX_TEXTS + 1)}, {"texts": ["a" * (CHARACTERS + 1)]}, b'{"texts": ["\\ud800"]}',
    ],
)  # fmt: skip
def test_render__anything_else__is_refused(client: Client, body: Any) -> None:
    response = render(client, body)
    assert (response.status_code, response.json()["error"]["code"]) == (400, "invalid_value")


def test_render__not_posted_or_not_permitted__is_refused(client: Client, project: Project) -> None:
    assert client.get(RENDERED).status_code == 405
    assert render(signed_in(Role.READER_WITHOUT_CONTENT, project), {"texts": []}).status_code == 403
    assert render(Client(), {"texts": []}).status_code == 302


def test_render__without_a_csrf_token__is_refused(db: None) -> None:
    user = User.objects.create_superuser(f"operator-{uuid.uuid4().hex}")
    client = Client(enforce_csrf_checks=True)
    client.force_login(user)
    assert render(client, {"texts": []}).status_code == 403


def test_origin__page_of_a_record__names_it_and_its_project(client: Client, project: Project) -> None:
    config = make_config(project)
    path = f"/admin/prompts/promptconfig/{config.pk}/change/"
    found = origin(client, path)
    assert (found["page"], found["project"]) == (path, str(project.pk))
    assert found["data"] == {
        "view": "prompts_promptconfig_change",
        "object_id": str(config.pk),
        "kind": "prompt config",
        "name": str(config),
        "project_id": str(project.pk),
    }


def test_origin__record_that_may_not_be_seen__is_left_out(client: Client) -> None:
    config = make_config(make_project())
    found = origin(client, f"/admin/prompts/promptconfig/{config.pk}/change/")
    assert found["data"] == {"view": "prompts_promptconfig_change", "object_id": str(config.pk)}
    assert found["project"] == ""


def test_origin__list__has_its_query(client: Client) -> None:
    found = origin(client, "/admin/prompts/promptconfig/?project__id__exact=5&q=a%20b&p=" + "9" * 250)
    assert found["project"] == "5"
    assert found["data"]["query"] == {"project__id__exact": "5", "q": "a b", "p": "9" * 200}


@tabled
def test_origin__anything_else__is_left_out(client: Client, path: str) -> None:
    assert origin(client, path) is None


@pytest.mark.parametrize("key", ["0", "x' OR 1=1", "9" * 100, "a_5F"])
def test_origin__record_that_is_not_there__is_its_path_only(client: Client, key: str) -> None:
    found = origin(client, f"/admin/prompts/promptconfig/{quote(key)}/change/")
    assert set(found["data"]) == {"view", "object_id"}


def test_origin__hostile_name__stays_text(client: Client, project: Project) -> None:
    path = "/admin/prompts/promptconfig/?q=" + quote("</script><script>alert(1)</script>")
    page = client.get(f"{PAGE}?from={quote(path, safe='')}").content.decode()
    assert "<script>" not in page
