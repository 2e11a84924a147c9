from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client

from analytics.clickhouse import client
from analytics.contracts import Outcome
from tests.factories.analytics import make_entry, store
from tests.factories.core import make_project

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

URL = "/admin/analytics/requests/"


@pytest.fixture
def browser(admin_user: User) -> Client:
    found = Client()
    found.force_login(admin_user)
    return found


def test_requests__filters__show_what_matches_of_one_project(browser: Client, spool: Path) -> None:
    project, other = make_project("alpha"), make_project("beta")
    store(
        spool,
        make_entry(project_id=str(project.pk), session_id="s1", model="gpt-a"),
        make_entry(
            project_id=str(project.pk), session_id="s2", model="gpt-b", outcome=Outcome.ERROR, operation="responses"
        ),
        make_entry(project_id=str(other.pk), session_id="s3", model="gpt-c"),
    )

    def models(**parameters: str) -> list[str]:
        page = browser.get(URL, parameters).content.decode()
        return [name for name in ("gpt-a", "gpt-b", "gpt-c") if name in page]

    assert models() == ["gpt-a", "gpt-b"]
    assert models(project=str(other.pk)) == ["gpt-c"]
    assert models(session="s1") == ["gpt-a"]
    assert models(outcome="error") == ["gpt-b"]
    assert models(outcome="nonsense") == []
    assert models(operation="responses") == ["gpt-b"]
    assert models(operation="nonsense") == []


def test_requests__many__page_by_page(browser: Client, spool: Path) -> None:
    project = make_project()
    store(spool, *(make_entry(project_id=str(project.pk), session_id=f"session-{i:02d}") for i in range(60)))

    first = browser.get(URL).content.decode()
    second = browser.get(URL, {"p": "2"}).content.decode()

    assert "60 requests" in first
    assert "p=2" in first
    assert (first.count(">session-"), second.count(">session-")) == (50, 10)


def test_requests__content_with_markup__shown_escaped(browser: Client, spool: Path) -> None:
    body = b'{"messages": [{"role": "user", "content": "<script>alert(1)</script>"}]}'
    store(spool, make_entry(body, b"not json <b>", project_id=str(make_project().pk), session_id="<i>"))

    text = browser.get(URL).content.decode()

    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert "<i>" not in text


def test_requests__not_staff__sent_to_the_login(django_user_model: type[User]) -> None:
    visitor = Client()
    visitor.force_login(django_user_model.objects.create_user("visitor"))

    assert visitor.get(URL).status_code == 302


def test_requests__staff_without_permission__403(django_user_model: type[User]) -> None:
    visitor = Client()
    visitor.force_login(django_user_model.objects.create_user("clerk", is_staff=True))

    assert visitor.get(URL).status_code == 403


def test_requests__store_away__says_so(browser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    make_project()
    client.close()
    with monkeypatch.context() as patch:
        patch.setattr(client, "resolve_url", lambda: "clickhouse://127.0.0.1:1/llm")
        page = browser.get(URL)
    client.close()

    assert page.status_code == 503
    assert int(page.headers["Retry-After"]) > 0
    assert "does not answer" in page.content.decode()
    assert "No requests" not in page.content.decode()
