from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.test import APIClient

from analytics.errors import FeedbackTokenError
from analytics.models import Feedback
from analytics.scores.feedback_tokens import HEADER, check_token, make_token
from core.models import Project
from core.roles import Role
from tests.factories.core import client_of, make_project, make_staff

URL, TOKEN_URL = "/api/llm/sessions/s/feedback", "/api/llm/sessions/s/feedback-token"


@pytest.fixture
def browser(project: Project) -> APIClient:
    """A client with a key that anybody may know."""
    return client_of(project, scopes=["feedback:write"])


@pytest.fixture
def server(project: Project) -> APIClient:
    """A client with a key of an application's server, which has another scope too."""
    return client_of(project, scopes=["feedback:write", "prompts:read"])


def give(api: APIClient, project: Project, token: str | None = None, url: str = URL) -> Any:
    headers = {} if token is None else {HEADER: token}
    return api.post(url, {"project_id": str(project.pk), "score": 4}, headers=headers)


def refused(answer: Any) -> str:
    assert answer.status_code == 403, answer.content
    assert not Feedback.objects.exists()
    code: str = answer.json()["error"]["code"]
    return code


def test_feedback__public_key_with_the_session_s_token__is_kept(
    browser: APIClient, server: APIClient, project: Project
) -> None:
    made = server.post(TOKEN_URL, {})

    assert made.status_code == 201
    assert made.json()["session_id"] == "s"
    assert give(browser, project, made.json()["token"]).status_code == 201
    assert Feedback.objects.get().session_id == "s"


@pytest.mark.parametrize("token", [None, ""])
def test_feedback__public_key_without_a_token__is_refused(
    browser: APIClient, project: Project, token: str | None
) -> None:
    assert refused(give(browser, project, token)) == "feedback_token_missing"


@pytest.mark.parametrize("token", ["x", ":", "9999999999:x", "é", "1:" * 500])
def test_feedback__public_key_with_what_is_no_token__is_refused(
    browser: APIClient, project: Project, token: str
) -> None:
    assert refused(give(browser, project, token)) == "feedback_token_invalid"


def test_feedback__token_of_another_session_or_project__is_refused(browser: APIClient, project: Project) -> None:
    own, _ = make_token(project.pk, "s", seconds=60)
    elsewhere, _ = make_token(make_project().pk, "s", seconds=60)

    assert refused(give(browser, project, own, "/api/llm/sessions/t/feedback")) == "feedback_token_invalid"
    assert refused(give(browser, project, elsewhere)) == "feedback_token_invalid"


def test_feedback__token_that_has_expired__is_refused(
    browser: APIClient, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, expires_at = make_token(project.pk, "s", seconds=60)
    monkeypatch.setattr("analytics.scores.feedback_tokens.timezone.now", lambda: expires_at)

    with pytest.raises(FeedbackTokenError, match="expired"):
        check_token(token, project.pk, "s")
    monkeypatch.setattr("analytics.scores.feedback_tokens.timezone.now", lambda: expires_at - timedelta(seconds=1))
    check_token(token, project.pk, "s")


def test_feedback__key_with_another_scope__needs_no_token(server: APIClient, project: Project) -> None:
    assert give(server, project).status_code == 201


def test_token__public_key__makes_none(browser: APIClient) -> None:
    assert refused(browser.post(TOKEN_URL, {})) == "scope_missing"


def test_token__person__with_the_right_to_give_feedback(project: Project) -> None:
    for role, status in ((Role.READER, 403), (Role.EDITOR, 201)):
        client = Client()
        client.force_login(make_staff(role, project))
        answer = client.post(
            TOKEN_URL, "{}", content_type="application/json", headers={"X-Project-Id": str(project.pk)}
        )
        assert answer.status_code == status


@given(data=st.data())
def test_token__changed_in_any_character__is_no_token(data: st.DataObject) -> None:
    project_id = Project().pk
    token, _ = make_token(project_id, "s", seconds=60)
    place = data.draw(st.integers(0, len(token) - 1))
    character = data.draw(st.characters(codec="utf-8").filter(lambda drawn: drawn != token[place]))

    with pytest.raises(FeedbackTokenError):
        check_token(token[:place] + character + token[place + 1 :], project_id, "s")
