from __future__ import annotations

from typing import Any

import pytest
from django.db import DatabaseError
from pytest_django import DjangoAssertNumQueries
from rest_framework.test import APIClient

from analytics.models import Score
from core.models import Project
from tests.factories.core import make_project
from tests.factories.scores import make_score, score_item
from tests.tables.cases import tabled

URL = "/api/llm/scores/batch"


def post(api: APIClient, project: Project, *items: dict[str, Any]) -> Any:
    return api.post(URL, {"project_id": str(project.pk), "scores": list(items)})


def test_batch__several__all_stored_in_the_order_given(api: APIClient, project: Project) -> None:
    items = [score_item(request_id=f"r-{n}", score_value=n, reason=f"because {n}") for n in range(20)]

    answer = post(api, project, *items)

    assert answer.status_code == 201
    body = answer.json()
    assert (body["count"], body["created"], body["updated"]) == (20, 20, 0)
    assert [item["request_id"] for item in body["scores"]] == [f"r-{n}" for n in range(20)]
    assert sorted(Score.objects.values_list("score_value", flat=True)) == list(range(20))


def test_batch__new_known_and_unchanged__distinguished(api: APIClient, project: Project) -> None:
    make_score(project, score_id="changes", score_value=1)
    make_score(project, score_id="stays")

    answer = post(
        api,
        project,
        score_item(score_id="changes", score_value=2),
        score_item(score_id="stays"),
        score_item(score_id="comes"),
        score_item(),
    )

    body = answer.json()
    assert (body["count"], body["created"], body["updated"]) == (4, 2, 1)
    assert [item["revision"] for item in body["scores"]] == [2, 1, 1, 1]
    assert Score.objects.count() == 4
    assert Score.objects.get(score_id="changes").score_value == 2


@tabled
def test_batch__last_item_bad__400_naming_it_and_none_stored(
    api: APIClient, project: Project, last: dict[str, Any], field: str
) -> None:
    answer = post(api, project, score_item(score_id="twice"), score_item(), score_item(**last))

    assert answer.status_code == 400
    assert list(answer.json()["error"]["details"]) == [f"scores.2.{field}"]
    assert not Score.objects.exists()


def test_batch__missing_field__named_with_its_place(api: APIClient, project: Project) -> None:
    error = post(api, project, score_item(), {"request_id": "r"}).json()["error"]

    assert set(error["details"]) == {"scores.1.score_name", "scores.1.score_value"}
    assert not Score.objects.exists()


def test_batch__last_id_belongs_elsewhere__409_and_nothing_changed(api: APIClient, project: Project) -> None:
    make_score(project, score_id="a", score_value=1)
    make_score(project, score_id="b", request_id="another")

    answer = post(
        api, project, score_item(), score_item(score_id="a", score_value=50), score_item(score_id="b", score_value=50)
    )

    assert answer.status_code == 409
    assert list(answer.json()["error"]["details"]) == ["scores.2.score_id"]
    assert sorted(Score.objects.values_list("score_value", flat=True)) == [1, 87.5]


def test_batch__database_fails_in_the_middle__none_stored(
    api: APIClient, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_score(project, score_id="a", score_value=1)

    def fail(*_: Any, **__: Any) -> None:
        raise DatabaseError("no more room")

    monkeypatch.setattr("django.db.models.query.QuerySet.bulk_update", fail)
    answer = post(api, project, score_item(), score_item(score_id="new"), score_item(score_id="a", score_value=2))

    assert answer.status_code == 500
    assert Score.objects.get().score_value == 1


def test_batch__item_of_another_project__403_and_none_stored(api: APIClient, project: Project) -> None:
    theirs = str(make_project().pk)

    answer = post(api, project, score_item(project_id=str(project.pk)), score_item(project_id=theirs))

    assert answer.status_code == 403
    assert list(answer.json()["error"]["details"]) == ["scores.1.project_id"]
    assert not Score.objects.exists()


@pytest.mark.parametrize("missing", ["project_id", "scores"])
def test_batch__required_field_missing__400_naming_it(api: APIClient, project: Project, missing: str) -> None:
    body: dict[str, Any] = {"project_id": str(project.pk), "scores": [score_item()]}
    del body[missing]

    error = api.post(URL, body).json()["error"]

    assert (error["code"], list(error["details"])) == ("missing_field", [missing])


def test_batch__thousand__in_a_handful_of_queries_and_one_more_is_refused(
    api: APIClient, project: Project, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    items = [score_item(request_id=f"r-{n}", score_id=f"s-{n}" if n % 2 else None) for n in range(1000)]

    with django_assert_max_num_queries(25):
        assert post(api, project, *items).status_code == 201
    refused = post(api, project, *items, score_item())

    assert refused.status_code == 400
    assert list(refused.json()["error"]["details"]) == ["scores"]
    assert Score.objects.count() == 1000
