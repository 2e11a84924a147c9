from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from analytics.models import EvaluationTask, OnlineEvaluation, ReviewQueue
from analytics.reviews.due_labels import needs_second_person
from core.models import Project
from core.roles import Role
from tests.console.reviews.test_reviews import REVIEWS, address_of, content_of, item_of, visitor_of
from tests.factories.analytics import make_entry, store
from tests.factories.core import make_project
from tests.factories.evaluators import make_evaluator
from tests.factories.online_evaluations import make_label_task, make_labelled_evaluation
from tests.factories.scores import make_score

pytestmark = pytest.mark.django_db
LABELS = f"{REVIEWS}labels/"
ROLLOUT = UUID(int=77)
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg=="
)


@pytest.fixture
def editor(project: Project) -> Client:
    return visitor_of(project, name="ann")


@pytest.fixture
def evaluation(project: Project) -> OnlineEvaluation:
    return make_labelled_evaluation(make_evaluator(project, name="polite"))


def stored(project: Project, spool: Path, evaluation: OnlineEvaluation) -> str:
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{base64.b64encode(PIXEL).decode()}"}}
    asked = [
        {"role": "system", "content": "You are version two."},
        {"role": "user", "content": [{"type": "text", "text": "What is this?"}, picture]},
    ]
    while True:
        entry = make_entry(
            json.dumps({"model": "big-1", "messages": asked}).encode(),
            b'{"model": "big-1", "choices": [{"message": {"role": "assistant", "content": "A pixel."}}]}',
            project_id=str(project.pk),
            model="big-1",
            prompt_version=2,
            rollout_id=str(ROLLOUT),
            variant="target",
        )
        if not needs_second_person(evaluation.evaluator_id, UUID(entry.record.request_id)):
            break
    store(spool, entry)
    make_label_task(evaluation, request_id=entry.record.request_id, rollout_id=ROLLOUT)
    make_score(project, request_id=entry.record.request_id, score_name="polite@1", evaluator_type="llm_judge")
    return str(entry.record.request_id)


def page_of(client: Client, evaluation: OnlineEvaluation, **query: Any) -> str:
    given = {"project": str(evaluation.project_id), "evaluator_id": str(evaluation.evaluator_id), **query}
    return content_of(client.get(LABELS, given))


def make_labels(client: Client, evaluation: OnlineEvaluation, **fields: Any) -> ReviewQueue:
    address = f"{LABELS}?project={evaluation.project_id}&evaluator_id={evaluation.evaluator_id}"
    answered = client.post(address, {"count": "20", "kind": "boolean", **fields})
    assert answered.status_code == 302, answered.content
    return ReviewQueue.objects.latest("created_at")


def test_labels__page__offers_so_many_and_makes_a_queue_of_them(editor: Client, evaluation: OnlineEvaluation) -> None:
    for _ in range(3):
        make_label_task(evaluation)

    page = page_of(editor, evaluation, count="2")

    assert "3 answers are due for a label" in page and 'name="count" value="2"' in page
    queue = make_labels(editor, evaluation, count="2", kind="number")
    assert (queue.items.count(), queue.due_labels, queue.score_name) == (2, True, "polite")
    assert (queue.minimum, queue.maximum, queue.created_by) == (1, 5, "user:ann")
    page = page_of(editor, evaluation)
    assert "1 answer is due" in page and f"Go on with {queue.name}" in page
    assert "labels/?" in content_of(editor.get(REVIEWS, {"project": str(evaluation.project_id)}))


def test_labels__nothing_due__says_the_first_step(editor: Client, evaluation: OnlineEvaluation) -> None:
    page = page_of(editor, evaluation)
    assert "No answer is due for a label." in page and "label share" in page and "Label them" not in page
    OnlineEvaluation.objects.update(label_share=None)
    address = f"{LABELS}?project={evaluation.project_id}&evaluator_id={evaluation.evaluator_id}"
    refused = content_of(editor.post(address, {"count": "20", "kind": "boolean"}))
    assert "None of its labels is due" in refused
    assert not ReviewQueue.objects.exists()


def test_labels__without_an_evaluator__lists_those_that_have_some(
    editor: Client, project: Project, evaluation: OnlineEvaluation
) -> None:
    empty = content_of(editor.get(LABELS, {"project": str(project.pk)}))
    assert "No answer is due for a label." in empty
    make_label_task(evaluation)

    page = content_of(editor.get(LABELS, {"project": str(project.pk)}))

    assert f"evaluator_id={evaluation.evaluator_id}" in page and "polite</a>: 1" in page


@pytest.mark.usefixtures("clickhouse")
def test_review__of_a_due_label__shows_the_answer_and_neither_arm_nor_request(
    project: Project, spool: Path, editor: Client, evaluation: OnlineEvaluation
) -> None:
    asked = stored(project, spool, evaluation)
    queue = make_labels(editor, evaluation)

    page = content_of(editor.get(address_of(queue)))

    assert "What is this?" in page and "A pixel." in page and "shown once the label is given" in page
    for hidden in (asked, str(ROLLOUT), "baseline", "big-1", "version two", "87.5"):
        assert hidden not in page
    assert not re.search(r">[^<]*\btarget\b", page)
    [picture] = {one for one in page.split('"') if "/images/" in one}
    answered = editor.get(picture)
    assert (answered.status_code, answered.content) == (200, PIXEL)
    item = item_of(page)
    answer = editor.post(address_of(queue), {"item": item, "choice": "1.0"}, follow=True)
    given = content_of(answer)
    assert "All 1 labels of this queue are given." in given and "Label 20 more" in given
    after = content_of(editor.get(address_of(queue), {"item": item}))
    assert asked in after and "big-1" in after and "version two" in after
    assert EvaluationTask.objects.get().label == 1


def test_queue__of_due_labels__names_no_filter_and_is_marked(editor: Client, evaluation: OnlineEvaluation) -> None:
    make_label_task(evaluation)
    queue = make_labels(editor, evaluation)

    page = content_of(editor.get(address_of(queue)))

    assert "Requests of the filter" not in page and "hidden until it is labelled" in page
    assert "A tenth of the labels is given by two people" in page
    assert "due labels)" in content_of(editor.get(REVIEWS, {"project": str(evaluation.project_id)}))


def test_roles__readers_and_others_make_no_labels(project: Project, evaluation: OnlineEvaluation) -> None:
    make_label_task(evaluation)
    reader, other = visitor_of(project, Role.READER_WITHOUT_CONTENT), make_project()
    address = f"{LABELS}?project={project.pk}&evaluator_id={evaluation.evaluator_id}"

    assert reader.get(address).status_code == 403
    assert reader.post(address, {"count": "1", "kind": "boolean"}).status_code == 403
    assert "labels/?" not in content_of(reader.get(REVIEWS, {"project": str(project.pk)}))
    foreign = visitor_of(other)
    assert (
        foreign.get(LABELS, {"project": str(other.pk), "evaluator_id": str(evaluation.evaluator_id)}).status_code == 404
    )
    assert not ReviewQueue.objects.exists()
