from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from rest_framework.test import APIClient

from analytics.models import Feedback
from analytics.scores.selectors import feedback_scores, list_feedback
from core.models import Project
from tests.factories.core import client_of, make_project
from tests.tables.cases import tabled


def url(session_id: str) -> str:
    return f"/api/llm/sessions/{quote(session_id, safe='')}/feedback"


def post(api: APIClient, project: Project, session_id: str = "s", **values: Any) -> Any:
    return api.post(url(session_id), {"project_id": str(project.pk), **values})


def test_feedback__score_and_text__kept_and_listed(api: APIClient, project: Project) -> None:
    answer = post(api, project, score=4, text="Good, but slow.")

    assert answer.status_code == 201
    made = Feedback.objects.get()
    assert answer.json() == {
        "id": str(made.pk),
        "project_id": str(project.pk),
        "session_id": "s",
        "request_id": None,
        "score": 4,
        "text": "Good, but slow.",
        "edited": False,
        "created_by": made.created_by,
        "created_at": answer.json()["created_at"],
    }
    assert api.get(url("s")).json() == {"count": 1, "next": None, "previous": None, "results": [answer.json()]}


def test_feedback__several__all_kept_latest_first(api: APIClient, project: Project) -> None:
    for score in (1, 5, 3):
        post(api, project, score=score)

    assert [item["score"] for item in api.get(url("s")).json()["results"]] == [3, 5, 1]
    assert [item["score"] for item in api.get(url("s"), {"limit": 1, "offset": 2}).json()["results"]] == [1]


@pytest.mark.parametrize(
    ("values", "stored"),
    [
        ({"score": 1}, (1, "")),
        ({"score": 5, "text": None}, (5, "")),
        ({"score": 5, "text": "  "}, (5, "")),
        ({"text": "words"}, (None, "words")),
        ({"score": None, "text": "'; DROP TABLE x; -- 😀"}, (None, "'; DROP TABLE x; -- 😀")),
        ({"text": "x" * 10_000}, (None, "x" * 10_000)),
    ],
)
def test_feedback__one_of_both__is_enough(
    api: APIClient, project: Project, values: dict[str, Any], stored: tuple[int | None, str]
) -> None:
    answer = post(api, project, **values)

    assert answer.status_code == 201, answer.json()
    assert (answer.json()["score"], answer.json()["text"]) == stored


@tabled
def test_feedback__refused_values__400_naming_the_field(
    api: APIClient, project: Project, values: dict[str, Any], field: str
) -> None:
    answer = post(api, project, **values)

    assert answer.status_code == 400, answer.json()
    assert list(answer.json()["error"]["details"]) == [field]
    assert not Feedback.objects.exists()


def test_feedback__no_project_in_the_body__400(api: APIClient) -> None:
    error = api.post(url("s"), {"score": 4}).json()["error"]

    assert (error["code"], list(error["details"])) == ("missing_field", ["project_id"])


def test_feedback__another_projects__403_and_not_seen(api: APIClient, project: Project) -> None:
    other = make_project()
    assert post(api, other, score=1).status_code == 403
    post(client_of(other), other, score=1)

    assert api.get(url("s")).json()["count"] == 0
    assert feedback_scores(project.pk, ["s"]) == {}


@pytest.mark.parametrize(
    "session_id",
    ["a/b", "a/b/feedback", "a b", "100%", "_", "'\"\\", "ü😀", "x" * 1024, "😀" * 1024, "..", "a?b#c", "-"],
)
def test_feedback__any_session_id__its_own_feedback(api: APIClient, project: Project, session_id: str) -> None:
    assert post(api, project, session_id, score=2).status_code == 201
    assert post(api, project, "other", score=5).status_code == 201

    assert [item["session_id"] for item in api.get(url(session_id)).json()["results"]] == [session_id]
    assert feedback_scores(project.pk, [session_id, "nobody"]) == {session_id: 2.0}


@pytest.mark.parametrize("session_id", ["a\x00b", "x" * 1025])
def test_feedback__impossible_session_id__400(api: APIClient, project: Project, session_id: str) -> None:
    for answer in (post(api, project, session_id, score=2), api.get(url(session_id))):
        assert answer.status_code == 400
        assert list(answer.json()["error"]["details"]) == ["session_id"]


def test_feedback_scores__many_sessions__exact_means(api: APIClient, project: Project) -> None:
    scores_by_session = {f"s{n}": [1 + (n + k) % 5 for k in range(n % 4)] for n in range(12)}
    for session_id, scores in scores_by_session.items():
        post(api, project, session_id, text="no score")
        for score in scores:
            post(api, project, session_id, score=score)

    session_ids = [*scores_by_session, *(f"nobody-{n}" for n in range(1500))]

    assert feedback_scores(project.pk, session_ids) == {
        session_id: sum(scores) / len(scores) for session_id, scores in scores_by_session.items() if scores
    }
    assert [row.text for row in list_feedback(project.pk, "s0")] == ["no score"]
