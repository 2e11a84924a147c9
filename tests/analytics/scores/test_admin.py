from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from analytics.models import Feedback, Score
from analytics.scores.services import record_feedback
from core.models import Project
from tests.factories.core import make_project
from tests.factories.scores import make_score

SCORES, FEEDBACK = "/admin/analytics/score/", "/admin/analytics/feedback/"


@pytest.fixture
def browser(admin_user: User) -> Client:
    found = Client()
    found.force_login(admin_user)
    return found


def page(browser: Client, url: str, **parameters: str) -> str:
    answer = browser.get(url, parameters)
    assert answer.status_code == 200
    return answer.content.decode()


def test_scores__filter_and_search__show_what_matches(browser: Client, project: Project) -> None:
    make_score(project, request_id="request-one", score_type="boolean", score_value=1)
    make_score(make_project(), request_id="request-two", score_name="tone")

    assert "request-one" in (everything := page(browser, SCORES)) and "request-two" in everything
    found = page(browser, SCORES, project__id__exact=str(project.pk))
    assert "request-one" in found and "request-two" not in found
    assert "request-one" not in page(browser, SCORES, score_type__exact="number")
    assert "request-two" in page(browser, SCORES, q="tone")
    assert "request-two" not in page(browser, SCORES, q="ton")


def test_score__page__shows_its_reason_escaped_and_no_way_to_change_it(browser: Client, project: Project) -> None:
    row = make_score(project, reason="<script>alert(1)</script>")
    url = f"{SCORES}{row.pk}/change/"

    text = page(browser, url)

    assert "&lt;script&gt;alert(1)" in text and "<script>alert" not in text
    assert 'name="_save"' not in text
    assert browser.post(url, {"reason": "x"}).status_code == 403
    assert browser.post(f"{SCORES}{row.pk}/delete/", {"post": "yes"}).status_code == 403
    assert browser.get(f"{SCORES}add/").status_code == 403
    assert Score.objects.get().reason == row.reason


def test_feedback__list_and_page__show_the_text_escaped(browser: Client, project: Project) -> None:
    record_feedback(project_id=project.pk, session_id="a/b", score=4, text="<b>" + "x" * 200, actor="")
    row = Feedback.objects.get()

    listed = page(browser, FEEDBACK)
    assert "&lt;b&gt;xxx" in listed and "x" * 101 not in listed
    assert "x" * 200 in page(browser, f"{FEEDBACK}{row.pk}/change/")
    assert "a/b" in page(browser, FEEDBACK, q="a/b")
    assert browser.post(f"{FEEDBACK}{row.pk}/delete/", {"post": "yes"}).status_code == 403
