from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from analytics.models import ReviewItem, ReviewQueue, Score
from core.models import Project
from core.roles import Role
from tests.factories.analytics import make_entry, store
from tests.factories.core import make_project, make_staff
from tests.factories.reviews import make_queue
from tests.factories.scores import make_score
from tests.tables.cases import tabled

pytestmark = pytest.mark.django_db
REVIEWS = "/admin/reviews/"


def visitor_of(project: Project, role: Role = Role.EDITOR, name: str | None = None) -> Client:
    client = Client()
    client.force_login(make_staff(role, project, name=name))
    return client


def content_of(answer: Any) -> str:
    assert answer.status_code == 200, answer.status_code
    text = b"".join(answer.streaming_content) if answer.streaming else answer.content
    return str(text.decode())


def address_of(queue: ReviewQueue) -> str:
    return f"{REVIEWS}{queue.project_id}/{queue.pk}/"


def item_of(page: str) -> str:
    found = re.search(r'name="item" value="([^"]+)"', page)
    assert found, "the page offers no item"
    return found[1]


@pytest.fixture
def editor(project: Project) -> Client:
    return visitor_of(project, name="ann")


@pytest.fixture
def request_ids(clickhouse: None, project: Project, spool: Path) -> list[str]:
    entries = [
        make_entry(
            b'{"messages": [{"role": "user", "content": "Where is <my> parcel?"}]}',
            b'{"choices": [{"message": {"role": "assistant", "content": "On its way."}}]}',
            project_id=str(project.pk),
            user_id="ann",
        )
        for _ in range(3)
    ]
    store(spool, *entries)
    return [entry.record.request_id for entry in entries]


def test_queues__list__progress_and_agreement_as_the_api_answers(project: Project, editor: Client) -> None:
    queue = make_queue(project, items=4, name="Did it help?")
    done = queue.items.get(position=1)
    score = make_score(
        project, request_id=str(done.request_id), score_name="helpful", score_type="boolean", score_value=1
    )
    Score.objects.update(evaluator_type="human")
    ReviewItem.objects.filter(pk=done.pk).update(state="done", score_id=score.pk)
    make_score(
        project, request_id=str(done.request_id), score_name="helpful", score_type="boolean", score_value=1,
        evaluator_type="llm_judge",
    )  # fmt: skip

    page = content_of(editor.get(REVIEWS, {"project": str(project.pk)}))

    assert "Did it help?" in page and "1 of 4" in page
    assert "llm_judge: 100 % equal" in page and "n = 1" in page
    assert f'href="{address_of(queue)}' in page


def test_queue__form_prefilled_from_an_address__makes_what_the_api_would(
    project: Project, editor: Client, request_ids: list[str]
) -> None:
    query = {"project": str(project.pk), "user_id": "ann", "sort": "-ts"}
    page = content_of(editor.get(REVIEWS, query))
    assert 'value="user_id=ann"' in page and '<details class="card" open' in page

    fields = {"name": "Ann's", "score_name": "helpful", "kind": "boolean", "sample_size": "2", "in_range": "on"}
    answer = editor.post(f"{REVIEWS}?project={project.pk}&range=1h", {**fields, "filter": "user_id=ann"})

    queue = ReviewQueue.objects.get()
    assert answer.status_code == 302 and answer["Location"].startswith(address_of(queue))
    assert (queue.name, queue.created_by, queue.items.count()) == ("Ann's", "user:ann", 2)
    assert set(queue.filter) == {"user_id", "start_date"}


def test_queue__several_values_and_not_of_the_log__kept_by_the_form_and_the_queue(
    project: Project, editor: Client, request_ids: list[str]
) -> None:
    query = {"project": str(project.pk), "user_id": ["ann", "bob"], "not_outcome": "error"}
    shown = content_of(editor.get(REVIEWS, query))
    [written] = re.findall(r'name="filter" value="([^"]*)"', shown)
    fields = {"name": "Both", "score_name": "helpful", "kind": "boolean", "sample_size": "5"}

    editor.post(f"{REVIEWS}?project={project.pk}", {**fields, "filter": written.replace("&amp;", "&")})

    queue = ReviewQueue.objects.get()
    assert queue.filter == {"user_id": ["ann", "bob"], "not_outcome": "error"}
    assert "user_id=ann&amp;user_id=bob" in content_of(editor.get(address_of(queue)))


@pytest.mark.usefixtures("request_ids")
@tabled
def test_queue__bad_form__says_why_and_keeps_what_was_typed(
    project: Project, editor: Client, values: dict[str, str], problem: str
) -> None:
    fields = {"name": "Mine", "score_name": "typed before", "kind": "boolean", "sample_size": "2", **values}

    page = content_of(editor.post(f"{REVIEWS}?project={project.pk}", fields))

    assert problem in page and 'value="typed before"' in page
    assert not ReviewQueue.objects.exists()


def test_review__item__its_conversation_and_the_buttons_of_the_rubric(
    project: Project, editor: Client, request_ids: list[str]
) -> None:
    queue = make_queue(
        project, request_ids=request_ids, kind="category", labels=["bad", "<good>"], instructions="Be strict."
    )

    page = content_of(editor.get(address_of(queue)))

    assert "Where is &lt;my&gt; parcel?" in page and "On its way." in page and "Be strict." in page
    assert re.findall(r'name="choice" value="([^"]+)" data-answer="(\d)"', page) == [
        ("bad", "1"),
        ("&lt;good&gt;", "2"),
    ]
    request_id = queue.items.get(pk=item_of(page)).request_id
    assert f'data-id="{request_id}" href="/admin/analytics/requests/{project.pk}/{request_id}/' in page


def test_review__one_press__scored_in_the_persons_name_and_the_next_item_shown(
    project: Project, editor: Client
) -> None:
    queue = make_queue(project, items=2)
    first = item_of(content_of(editor.get(address_of(queue))))

    answer = editor.post(address_of(queue), {"item": first, "choice": "1.0", "reason": "Fine."}, follow=True)

    assert item_of(content_of(answer)) != first
    row = Score.objects.get()
    assert (row.score_value, row.reason, row.evaluator_type, row.created_by) == (1, "Fine.", "human", "user:ann")
    assert "1 scored, 0 skipped, 1 open" in content_of(editor.get(address_of(queue)))


def test_review__last_one_skipped__says_that_all_are_reviewed(project: Project, editor: Client) -> None:
    queue = make_queue(project, items=1)
    item = item_of(content_of(editor.get(address_of(queue))))

    page = content_of(editor.post(address_of(queue), {"item": item, "action": "skip"}, follow=True))

    assert "All 1 requests are reviewed." in page and 'name="choice"' not in page


def test_review__taken_meanwhile__says_so_and_offers_another(project: Project, editor: Client) -> None:
    queue = make_queue(project, items=2)
    item = item_of(content_of(editor.get(address_of(queue))))
    ReviewItem.objects.filter(pk=item).update(state="done", reviewed_by="user:ben")

    page = content_of(editor.post(address_of(queue), {"item": item, "choice": "1.0", "reason": "typed"}))

    assert "Another person has scored the item." in page and item_of(page) != item and "typed" in page
    assert not Score.objects.exists()


def test_review__number_beyond_the_bounds__says_so_and_keeps_the_comment(project: Project, editor: Client) -> None:
    queue = make_queue(project, items=1, kind="number", minimum=0, maximum=100)
    item = item_of(content_of(editor.get(address_of(queue))))

    for value in ("101", "much"):
        page = content_of(editor.post(address_of(queue), {"item": item, "value": value, "reason": "typed before"}))
        assert "score_value:" in page and "typed before" in page and item_of(page) == item
    answer = editor.post(address_of(queue), {"item": item, "value": "62.5"})

    assert answer.status_code == 302 and Score.objects.get().score_value == 62.5


def test_review__assigned_and_closed__by_the_forms(project: Project, editor: Client) -> None:
    queue = make_queue(project)

    editor.post(address_of(queue), {"action": "assign", "assignee": "ann", "count": "2"})
    assert queue.items.filter(assignee="ann").count() == 2
    page = content_of(editor.post(address_of(queue), {"action": "assign", "assignee": "nobody", "count": ""}))
    assert "Nobody of this name may score in this project." in page
    page = content_of(editor.post(address_of(queue), {"action": "close"}, follow=True))

    assert "The queue is closed." in page and 'name="choice"' not in page


def test_review__reader__sees_the_items_and_no_buttons(project: Project) -> None:
    queue = make_queue(project)
    reader = visitor_of(project, Role.READER_WITHOUT_CONTENT)

    page = content_of(reader.get(address_of(queue)))

    assert 'name="choice"' not in page and "Items of the queue" in page
    assert not ReviewItem.objects.exclude(claimed_by="").exists()
    assert reader.post(address_of(queue), {"item": "x", "choice": "1"}).status_code == 403
    assert reader.post(f"{REVIEWS}?project={project.pk}", {}).status_code == 403
    assert "New queue" not in content_of(reader.get(REVIEWS, {"project": str(project.pk)}))


def test_review__reader_without_content__no_texts(project: Project, request_ids: list[str]) -> None:
    queue = make_queue(project, request_ids=request_ids)
    reader = visitor_of(project, Role.READER_WITHOUT_CONTENT)

    page = content_of(reader.get(address_of(queue), {"item": str(queue.items.get(position=1).pk)}))

    assert "Your role does not show what people and models wrote." in page and "parcel" not in page


def test_review__of_another_project_or_nobody__404_and_403(project: Project, editor: Client) -> None:
    other = make_queue(make_project())
    nobody = Client()
    nobody.force_login(User.objects.create_user("clerk", is_staff=True))

    assert editor.get(address_of(other)).status_code == 404
    assert editor.get(f"{REVIEWS}{project.pk}/{other.pk}/").status_code == 404
    assert nobody.get(REVIEWS).status_code == 403


def test_scores__list__each_leads_to_its_request(project: Project, admin_client: Client) -> None:
    make_score(project, request_id="019aa000-0000-7000-8000-000000000001")
    make_score(project, request_id="the client's own")

    page = content_of(admin_client.get("/admin/analytics/score/"))

    assert f'href="/admin/analytics/requests/{project.pk}/019aa000-0000-7000-8000-000000000001/"' in page
    assert "the client&#x27;s own" in page
