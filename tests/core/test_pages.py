from __future__ import annotations

from unittest.mock import patch

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.test import Client
from pytest_django import Settings

from core.models import Project
from core.roles import Role
from tests.factories.core import make_staff

BROWSER = {"accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}

pytestmark = pytest.mark.django_db


def test_start__in_a_browser__leads_on() -> None:
    text = Client().get("/", headers=BROWSER).content.decode()

    for target in ("/admin/", "/api/redoc/", "/api/docs/"):
        assert f'href="{target}"' in text
    assert "http://testserver/api/gateway/v1" in text


def test_start__for_a_program__is_json() -> None:
    links = Client().get("/").json()

    assert links["openai_base_url"] == "http://testserver/api/gateway/v1"
    assert Client().get(links["openapi"]).status_code == 200


def test_failure__in_a_browser__is_a_page_with_a_way_back() -> None:
    client = Client(raise_request_exception=False)
    with patch("config.urls.admin.site.index", side_effect=PermissionDenied):
        refused = client.get("/admin/", headers=BROWSER)
    with patch("core.views.render", side_effect=ZeroDivisionError("inner detail")):
        failed = client.get("/", headers=BROWSER)
    missing = client.get("/nothing", headers=BROWSER)

    for answer, status, title in ((missing, 404, "Not Found"), (failed, 500, "Internal Server Error")):
        text = answer.content.decode()
        assert answer.status_code == status
        assert answer.headers["Content-Type"].startswith("text/html")
        assert f"<h1>{title}</h1>" in text
        assert 'href="/"' in text
        assert answer.headers["x-request-id"] in text
        assert "inner detail" not in text
    assert refused.status_code in (302, 403)


@pytest.mark.parametrize("path", ["/admin/nowhere/", "/admin/prompts/6f0cbe5e-92d1-4f4e-8f0a-5d9d3a0a3f10/"])
def test_failure__unknown_address_of_the_operators_pages__is_inside_their_frame(
    client: Client, project: Project, path: str
) -> None:
    client.force_login(make_staff(Role.READER, project))

    answer = client.get(path, headers=BROWSER)

    text = answer.content.decode()
    assert answer.status_code == 404
    assert "<h1>Not Found</h1>" in text
    assert "slash" not in text
    assert 'id="navigation"' in text
    assert f'href="/admin/?project={project.pk}' in text
    assert answer.headers["x-request-id"] in text
    assert client.get(path).json()["error"]["code"] == "not_found"


def test_failure__of_somebody_without_the_operators_pages__has_no_frame(client: Client) -> None:
    client.force_login(User.objects.create_user("guest"))

    text = client.get("/admin/nowhere", headers=BROWSER, follow=True).content.decode()

    assert 'id="navigation"' not in text


def test_failure__for_a_program_or_below_api__is_the_envelope() -> None:
    assert Client().get("/nothing").json()["error"]["code"] == "not_found"
    assert Client().get("/api/nothing", headers=BROWSER).json()["error"]["code"] == "not_found"


@pytest.mark.parametrize(("secure_cookies", "hint"), [(True, "INSECURE_HTTP=1"), (False, "Open the page again")])
def test_csrf__login_without_its_cookie__says_why(settings: Settings, secure_cookies: bool, hint: str) -> None:
    settings.CSRF_COOKIE_SECURE = secure_cookies
    answer = Client(enforce_csrf_checks=True).post("/admin/login/", {"username": "ada"}, headers=BROWSER)

    assert answer.status_code == 403
    assert hint in answer.content.decode()
