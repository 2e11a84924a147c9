"""Review queues over the API: made from a filter, worked through by several people, closed."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from analytics.deletion.services import delete_request
from analytics.models import ReviewItem, ReviewQueue, Score
from core.models import Project
from core.roles import Role
from tests.factories.analytics import make_entry, store
from tests.factories.core import client_of, make_project, make_staff
from tests.factories.reviews import make_queue, queue_body
from tests.tables.cases import tabled

URL = "/api/llm/reviews"
pytestmark = pytest.mark.django_db


def person_of(project: Project, role: Role = Role.EDITOR, name: str | None = None) -> APIClient:
    """Returns a client with the session of a new member of staff."""
    client = APIClient(raise_request_exception=False)
    client.force_login(make_staff(role, project, name=name))
    client.credentials(HTTP_X_PROJECT_ID=str(project.pk))
    return client


def path_of(queue: ReviewQueue, *parts: str) -> str:
    return "/".join([URL, str(queue.pk), *parts])


def next_id(client: APIClient, queue: ReviewQueue) -> str:
    return str(client.post(path_of(queue, "next"), {}, format="json").json()["item"]["id"])


def score(client: APIClient, queue: ReviewQueue, item: str, **answer: Any) -> Any:
    return client.post(path_of(queue, "items", item, "score"), answer, format="json")


@pytest.mark.usefixtures("clickhouse")
def test_queue__of_a_filter__holds_what_matches_once_and_the_same_again(
    api: APIClient, project: Project, spool: Path
) -> None:
    slow = [make_entry(project_id=str(project.pk), user_id="ann", latency_ms=9_000) for _ in range(5)]
    store(spool, *slow, make_entry(project_id=str(project.pk), user_id="ben"), make_entry(user_id="ann"))
    filters = {"user_id": "ann", "min_latency_ms": "5000", "model": ""}

    answers = [api.post(URL, queue_body(filter=filters, sample_size=size), format="json") for size in (100, 100, 2)]

    assert [answer.status_code for answer in answers] == [201, 201, 201]
    body = answers[0].json()
    assert body["filter"] == {"user_id": "ann", "min_latency_ms": "5000"}
    assert body["progress"] == {"items": 5, "open": 5, "done": 0, "skipped": 0}
    chosen = [
        list(ReviewItem.objects.filter(queue=answer.json()["id"]).values_list("request_id", flat=True))
        for answer in answers
    ]
    assert {str(one) for one in chosen[0]} == {entry.record.request_id for entry in slow}
    assert chosen[0] == chosen[1] and chosen[2] == chosen[0][:2]


@pytest.mark.usefixtures("clickhouse")
@tabled
def test_queue__bad_body__400_naming_the_field(api: APIClient, values: dict[str, Any], field: str) -> None:
    answer = api.post(URL, queue_body(**values), format="json")

    assert answer.status_code == 400, answer.content
    assert field in answer.json()["error"]["message"]
    assert not ReviewQueue.objects.exists()


def test_next__two_people__get_different_items_until_none_is_left(project: Project) -> None:
    queue = make_queue(project, items=2)
    ann, ben, eve = (person_of(project) for _ in range(3))

    first, second = next_id(ann, queue), next_id(ben, queue)

    assert first != second
    assert next_id(ann, queue) == first
    assert eve.post(path_of(queue, "next"), {}, format="json").json()["item"] is None
    refused = score(eve, queue, first, score_value=1)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "review_item_taken")


def test_next__claim_over__goes_to_another_person(project: Project) -> None:
    queue = make_queue(project, items=1)
    held = next_id(person_of(project), queue)
    ReviewItem.objects.update(claimed_until=timezone.now() - timedelta(seconds=1))

    assert next_id(person_of(project), queue) == held


def test_score__yes__is_a_score_by_the_person_and_the_next_item_follows(project: Project) -> None:
    queue = make_queue(project, items=2)
    ann = person_of(project, name="ann")
    item = next_id(ann, queue)

    answer = score(ann, queue, item, score_value=True, reason="Answers the question.")

    assert answer.status_code == 200, answer.content
    body = answer.json()
    assert body["progress"] == {"items": 2, "open": 1, "done": 1, "skipped": 0}
    assert body["item"]["state"] == "done" and body["item"]["reviewed_by"] == "user:ann"
    row = Score.objects.get()
    assert str(row.pk) == body["score"]["id"] == body["item"]["score_id"]
    assert (row.score_name, row.score_value, row.score_type, row.reason) == (
        "helpful",
        1,
        "boolean",
        "Answers the question.",
    )
    assert (row.evaluator_type, row.created_by) == ("human", "user:ann")
    assert next_id(ann, queue) != item


def test_score__again__changed_by_its_author_alone(project: Project) -> None:
    queue = make_queue(project, items=1)
    ann, ben = person_of(project), person_of(project)
    item = next_id(ann, queue)
    score(ann, queue, item, score_value=1)

    assert score(ben, queue, item, score_value=0).status_code == 409
    assert score(ann, queue, item, score_value=0).status_code == 200

    assert [row.score_value for row in Score.objects.all()] == [0]


@pytest.mark.parametrize(
    ("rubric", "answer", "stored"),
    [
        ({"kind": "category", "labels": ["bad", "good"]}, {"score_label": "good"}, (2, "good")),
        ({"kind": "number", "minimum": 1, "maximum": 5}, {"score_value": 4}, (4, "")),
        ({"kind": "number", "minimum": 0, "maximum": 100}, {"score_value": 87.5}, (87.5, "")),
    ],
)
def test_score__of_the_rubric__stored(
    project: Project, rubric: dict[str, Any], answer: dict[str, Any], stored: tuple[float, str]
) -> None:
    queue, ann = make_queue(project, **rubric), person_of(project)

    assert score(ann, queue, next_id(ann, queue), **answer).status_code == 200

    row = Score.objects.get()
    assert (row.score_value, row.score_label) == stored


@tabled
def test_score__not_of_the_rubric__400_and_still_open(
    project: Project, rubric: dict[str, Any], answer: dict[str, Any], field: str
) -> None:
    queue, ann = make_queue(project, items=1, **rubric), person_of(project)
    item = next_id(ann, queue)

    refused = score(ann, queue, item, **answer)

    assert refused.status_code == 400 and field in refused.json()["error"]["details"]
    assert queue.items.get().state == "open" and not Score.objects.exists()


def test_skip__open_item__left_out_and_scored_later(project: Project) -> None:
    queue, ann = make_queue(project, items=1), person_of(project)
    item = next_id(ann, queue)

    skipped = ann.post(path_of(queue, "items", item, "skip"), {}, format="json")

    assert skipped.json()["item"]["state"] == "skipped"
    assert ann.post(path_of(queue, "next"), {}, format="json").json()["item"] is None
    assert score(ann, queue, item, score_value=1).status_code == 200
    assert ann.post(path_of(queue, "items", item, "skip"), {}, format="json").status_code == 409


def test_assign__some__offered_to_that_person_first_and_to_no_other(project: Project) -> None:
    queue = make_queue(project, items=3)
    ann, ben = person_of(project, name="ann"), person_of(project, name="ben")

    answer = ann.post(path_of(queue, "assign"), {"assignee": "ben", "count": 2}, format="json")

    assert answer.json() == {"assigned": 2}
    items = list(queue.items.order_by("position"))
    assert [item.assignee for item in items] == ["ben", "ben", ""]
    assert next_id(ann, queue) == str(items[2].pk)
    assert next_id(ben, queue) == str(items[0].pk)
    listed = ann.get(path_of(queue, "items"), {"assignee": "ben", "state": "open"}).json()
    assert [item["position"] for item in listed["results"]] == [1, 2]
    assert ann.post(path_of(queue, "assign"), {"assignee": ""}, format="json").json() == {"assigned": 2}


def test_assign__reader_or_stranger__400(project: Project) -> None:
    queue, ann = make_queue(project), person_of(project)
    make_staff(Role.READER, project, name="reads")

    for name in ("reads", "nobody"):
        answer = ann.post(path_of(queue, "assign"), {"assignee": name}, format="json")
        assert answer.status_code == 400 and "assignee" in answer.json()["error"]["details"]


def test_close__queue__takes_no_more_scores(project: Project) -> None:
    queue, ann = make_queue(project), person_of(project)
    item = next_id(ann, queue)

    closed = [ann.post(path_of(queue, "close"), {}, format="json").json() for _ in range(2)]

    assert closed[0] == closed[1] and closed[0]["state"] == "closed" and closed[0]["closed_at"]
    for answer in (score(ann, queue, item, score_value=1), ann.post(path_of(queue, "next"), {}, format="json")):
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "review_queue_closed")
    assert [row["name"] for row in ann.get(URL, {"state": "closed"}).json()["results"]] == [queue.name]
    assert ann.get(URL, {"state": "open"}).json()["count"] == 0


def test_item__unknown__404(api: APIClient, project: Project) -> None:
    answer = score(api, make_queue(project), str(uuid4()), score_value=1)

    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "review_item_not_found")


@pytest.mark.usefixtures("clickhouse")
def test_request__deleted__its_item_and_score_are_gone(api: APIClient, project: Project, spool: Path) -> None:
    entries = [make_entry(project_id=str(project.pk)) for _ in range(2)]
    store(spool, *entries)
    body = api.post(URL, queue_body(), format="json").json()
    queue = ReviewQueue.objects.get(pk=body["id"])
    item = queue.items.get(position=1)
    score(client_of(project), queue, str(item.pk), score_value=1)

    delete_request(project.pk, item.request_id, actor="test")

    assert [row.position for row in queue.items.all()] == [2]
    assert not Score.objects.exists()


@pytest.mark.usefixtures("clickhouse")
def test_item__added__behind_the_others_and_only_once(api: APIClient, project: Project, spool: Path) -> None:
    entry = make_entry(project_id=str(project.pk))
    store(spool, entry)
    queue = make_queue(project, items=2)
    body = {"request_id": entry.record.request_id}

    answers = [api.post(path_of(queue, "items"), body, format="json") for _ in range(2)]

    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].json() == answers[1].json()
    assert (answers[0].json()["position"], answers[0].json()["request_id"]) == (3, entry.record.request_id)
    assert queue.items.count() == 3


@pytest.mark.usefixtures("clickhouse")
def test_item__added_where_it_cannot_be__refused(
    api: APIClient, project: Project, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry, foreign = make_entry(project_id=str(project.pk)), make_entry(project_id=str(make_project().pk))
    store(spool, entry, foreign)
    own, of_another = {"request_id": entry.record.request_id}, {"request_id": foreign.record.request_id}
    queue, closed, other = make_queue(project), make_queue(project, state="closed"), make_queue(make_project())
    monkeypatch.setattr("analytics.reviews.services.MAX_ITEMS", 3)
    cases: tuple[tuple[ReviewQueue, dict[str, str], int, str], ...] = (
        (queue, {}, 400, "missing_field"),
        (queue, {"request_id": "x"}, 400, "invalid_value"),
        (queue, of_another, 404, "request_not_found"),
        (other, own, 404, "review_queue_not_found"),
        (closed, own, 409, "review_queue_closed"),
        (queue, own, 409, "review_queue_full"),
    )
    for where, body, status, code in cases:
        answer = api.post(path_of(where, "items"), body, format="json")
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert ReviewItem.objects.filter(queue__in=[queue, closed, other]).count() == 9
