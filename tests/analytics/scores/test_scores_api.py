from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from pytest_django import DjangoAssertNumQueries
from rest_framework.test import APIClient

from analytics.models import Score
from core.models import Project
from tests.factories.core import make_project
from tests.factories.scores import make_score, score_body
from tests.tables.cases import tabled

URL = "/api/llm/scores"


def post(api: APIClient, project: Project, **values: Any) -> Any:
    return api.post(URL, score_body(project.pk, **values))


def values_of(answer: Any) -> list[float]:
    assert answer.status_code == 200, answer.json()
    return [item["score_value"] for item in answer.json()["results"]]


def test_score__only_what_is_required__defaults_are_in_the_answer(api: APIClient, project: Project) -> None:
    answer = post(api, project)

    assert answer.status_code == 201
    body = answer.json()
    made = Score.objects.get()
    assert body.pop("created_at") == body.pop("updated_at")
    assert body == {
        "id": str(made.pk),
        "project_id": str(project.pk),
        "score_id": "",
        "request_id": "r-1",
        "score_name": "relevance",
        "score_value": 87.5,
        "score_type": "number",
        "score_label": "",
        "reason": "",
        "evaluator_type": "code",
        "created_by": made.created_by,
        "judge_model": "",
        "revision": 1,
    }
    assert made.created_by.startswith("key:")
    assert api.get(URL).json()["results"][0]["id"] == str(made.pk)


@pytest.mark.parametrize(
    "values",
    [
        {"score_value": 0},
        {"score_value": 100},
        {"score_value": 33.333333333333336},
        {"score_type": None, "reason": None, "evaluator_type": None, "score_label": None, "score_id": None},
        {"score_type": "boolean", "score_value": 0},
        {"score_type": "boolean", "score_value": 1.0},
        {"score_type": "boolean", "score_value": True},
        {"score_type": "category", "score_value": -3, "reason": "off topic", "score_label": "off"},
        {"score_type": "category", "score_value": 1e15},
        {"evaluator_type": "llm_judge"},
        {"evaluator_type": "my-judge-2"},
        {"request_id": "a/b ' % _ \\ ü 😀", "score_name": "ünïcode ' \" %"},
        {"request_id": "x" * 200, "score_name": "n" * 100, "reason": "r" * 10_000, "score_label": "l" * 100},
        {"request_id": "😀" * 200, "score_id": "😀" * 200, "score_name": "😀" * 100},
    ],
)
def test_score__allowed_values__kept_as_sent(api: APIClient, project: Project, values: dict[str, Any]) -> None:
    answer = post(api, project, **values)

    assert answer.status_code == 201, answer.json()
    stored = api.get(URL).json()["results"][0]
    for name, value in values.items():
        if value is not None:
            assert stored[name] == value


@tabled
def test_score__refused_values__400_naming_the_field(
    api: APIClient, project: Project, values: dict[str, Any], field: str
) -> None:
    answer = post(api, project, **values)

    assert answer.status_code == 400, answer.json()
    assert list(answer.json()["error"]["details"]) == [field]
    assert not Score.objects.exists()


@pytest.mark.parametrize("missing", ["project_id", "request_id", "score_name", "score_value"])
def test_score__required_field_missing__400_naming_it(api: APIClient, project: Project, missing: str) -> None:
    body = score_body(project.pk)
    del body[missing]

    error = api.post(URL, body).json()["error"]

    assert error["code"] == "missing_field"
    assert list(error["details"]) == [missing]


def test_score__same_without_score_id__added_each_time(api: APIClient, project: Project) -> None:
    post(api, project)
    post(api, project)

    assert api.get(URL).json()["count"] == 2


def test_score__same_score_id__changes_it_and_says_so(api: APIClient, project: Project) -> None:
    first = post(api, project, score_id="mine", reason="at first")
    second = post(api, project, score_id="mine", score_value=12, reason="on second thought")

    assert (first.status_code, second.status_code) == (201, 200)
    (stored,) = api.get(URL).json()["results"]
    assert stored == second.json()
    assert stored["id"] == first.json()["id"]
    assert (stored["score_value"], stored["reason"], stored["revision"]) == (12, "on second thought", 2)
    assert stored["created_at"] == first.json()["created_at"]
    assert stored["updated_at"] > first.json()["updated_at"]


def test_score__same_sent_again__nothing_changes(api: APIClient, project: Project) -> None:
    first = post(api, project, score_id="mine")
    again = post(api, project, score_id="mine")

    assert again.status_code == 200
    assert again.json() == first.json()


@pytest.mark.parametrize("other", [{"request_id": "r-2"}, {"score_name": "coherence"}])
def test_score__score_id_of_another_request_or_name__409(
    api: APIClient, project: Project, other: dict[str, str]
) -> None:
    post(api, project, score_id="mine")

    answer = post(api, project, score_id="mine", **other)

    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "score_exists"
    assert list(answer.json()["error"]["details"]) == ["score_id"]
    assert Score.objects.get().request_id == "r-1"


def test_score__score_id_of_another_project__is_free_here(api: APIClient, project: Project) -> None:
    theirs = make_score(make_project(), score_id="mine", score_value=1)

    assert post(api, project, score_id="mine").status_code == 201
    theirs.refresh_from_db()
    assert theirs.score_value == 1


def test_score__uuid_in_capitals__is_the_gateways_id(api: APIClient, project: Project) -> None:
    request_id = str(uuid4())
    post(api, project, request_id=request_id.upper())

    assert api.get(URL).json()["results"][0]["request_id"] == request_id
    assert api.get(URL, {"request_id": request_id.upper()}).json()["count"] == 1
    assert api.get(f"{URL}/request/{request_id.upper()}").json()["count"] == 1


def test_scores__filters__keep_what_matches(api: APIClient, project: Project) -> None:
    make_score(project, score_value=1, score_name="a", evaluator_type="human")
    make_score(project, score_value=2, score_name="b", evaluator_type="llm_judge", request_id="r-2")
    make_score(project, score_value=1, score_name="b", score_type="boolean")
    make_score(make_project(), score_value=9, score_name="a")

    assert values_of(api.get(URL)) == [1, 2, 1]
    assert values_of(api.get(URL, {"score_name": "b"})) == [1, 2]
    assert values_of(api.get(URL, {"evaluator_type": "llm_judge"})) == [2]
    assert values_of(api.get(URL, {"request_id": "r-2"})) == [2]
    assert values_of(api.get(URL, {"score_type": "boolean"})) == [1]
    assert values_of(api.get(URL, {"score_name": "a", "evaluator_type": "code"})) == []
    assert values_of(api.get(URL, {"score_name": "%"})) == []
    assert values_of(api.get(URL, {"score_name": "' OR 1=1 --"})) == []


def test_scores__dates__both_ends_are_in(api: APIClient, project: Project) -> None:
    for day in (1, 2, 3):
        row = make_score(project, score_value=day)
        made = datetime(2026, 5, day, 12, tzinfo=UTC)
        Score.objects.filter(pk=row.pk).update(created_at=made)

    assert values_of(api.get(URL, {"start_date": "2026-05-02"})) == [3, 2]
    assert values_of(api.get(URL, {"end_date": "2026-05-02"})) == [2, 1]
    assert values_of(api.get(URL, {"start_date": "2026-05-02T12:00:00Z", "end_date": "2026-05-02T12:00:00Z"})) == [2]
    assert values_of(api.get(f"{URL}?start_date=2026-05-02T14:00:00+02:00&end_date=2026-05-02")) == [2]
    assert values_of(api.get(URL, {"start_date": "2026-05-02T12:00:00.000001Z"})) == [3]


def test_scores__pages__cover_all_once(
    api: APIClient, project: Project, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for value in range(25):
        make_score(project, score_value=value)

    with django_assert_num_queries(3):  # The queries are the key, the count and the page.
        first = api.get(URL)
    second = api.get(URL, {"offset": 20})
    beyond = api.get(URL, {"offset": 2**40})

    assert values_of(first) + values_of(second) == list(reversed(range(25)))
    assert first.json()["count"] == second.json()["count"] == beyond.json()["count"] == 25
    assert values_of(beyond) == []


def test_scores_of_request__more_than_a_page__all_there(api: APIClient, project: Project) -> None:
    for value in range(30):
        make_score(project, request_id="a/b c", score_value=value)
    make_score(project, request_id="a/b")
    make_score(make_project(), request_id="a/b c")

    answer = api.get(f"{URL}/request/a%2Fb%20c")

    assert len(values_of(answer)) == answer.json()["count"] == 30
    assert len(values_of(api.get(f"{URL}/request/a/b c", {"limit": 7, "offset": 28}))) == 2


def test_scores_of_request__unknown__empty(api: APIClient) -> None:
    assert values_of(api.get(f"{URL}/request/nobody")) == []


@pytest.mark.parametrize("path", ["a%00b", "x" * 201])
def test_scores_of_request__impossible_id__400(api: APIClient, path: str) -> None:
    answer = api.get(f"{URL}/request/{path}")

    assert answer.status_code == 400
    assert list(answer.json()["error"]["details"]) == ["request_id"]


def test_scores__moment_in_future__empty(api: APIClient, project: Project) -> None:
    make_score(project)

    assert values_of(api.get(URL, {"start_date": (datetime.now(UTC) + timedelta(days=1)).isoformat()})) == []
