"""Queues of the labels that online evaluations have due: balanced, blind, kept filled, and counted in time."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from analytics.deletion.services import delete_request
from analytics.models import EvaluationTask, Evaluator, OnlineEvaluation, ReviewItem, ReviewQueue, Score
from analytics.request_log.record import SpoolEntry
from analytics.reviews import due_labels, services
from analytics.reviews.comparison import people_agree
from analytics.reviews.due_labels import LABEL_PATIENCE, SECOND_OPINIONS, fill_queues, needs_second_person
from core.models import Project
from core.roles import Role
from tests.analytics.reviews.test_queues_api import URL, next_id, path_of, person_of, score
from tests.at_once import at_once
from tests.factories.analytics import make_entry, store
from tests.factories.core import client_of, make_project
from tests.factories.evaluators import make_evaluator
from tests.factories.online_evaluations import make_label_task, make_labelled_evaluation
from tests.factories.reviews import make_queue, queue_body
from tests.factories.scores import make_score
from tests.tables.cases import tabled

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)


@pytest.fixture
def evaluator(project: Project) -> Evaluator:
    return make_evaluator(project, name="polite")


@pytest.fixture
def evaluation(evaluator: Evaluator) -> OnlineEvaluation:
    return make_labelled_evaluation(evaluator)


def make_label_queue(api: APIClient, evaluator: Evaluator, **fields: Any) -> ReviewQueue:
    body = queue_body(evaluator_id=str(evaluator.pk), due_labels=True, **fields)
    made = api.post(URL, body, format="json")
    assert made.status_code == 201, made.content
    return ReviewQueue.objects.get(pk=made.json()["id"])


def request_id(evaluator: Evaluator, *, is_second_needed: bool = False) -> UUID:
    """Returns an id whose hash asks for a second person, or does not."""
    while needs_second_person(evaluator.pk, found := uuid4()) != is_second_needed:
        pass
    return found


def task(evaluation: OnlineEvaluation, variant: str = "target", **fields: Any) -> EvaluationTask:
    return make_label_task(evaluation, variant, **{"request_id": request_id(evaluation.evaluator), **fields})


def give(client: APIClient, queue: ReviewQueue, value: float = 1) -> ReviewItem:
    """Labels the next item; returns it."""
    item = next_id(client, queue)
    answered = score(client, queue, item, score_value=value)
    assert answered.status_code == 200, answered.content
    return ReviewItem.objects.get(pk=item)


def arm_of(item: ReviewItem) -> str:
    return EvaluationTask.objects.get(request_id=item.request_id).variant


def test_queue__of_unequal_arms__has_one_of_each_in_turn_and_then_the_rest(
    api: APIClient, project: Project, evaluation: OnlineEvaluation
) -> None:
    for variant, tasks in (("target", 9), ("baseline", 3)):
        for _ in range(tasks):
            task(evaluation, variant)
    queue, ann = make_label_queue(api, evaluation.evaluator), person_of(project)

    arms = [arm_of(give(ann, queue)) for _ in range(12)]

    for turn in range(3):
        assert set(arms[2 * turn : 2 * turn + 2]) == {"target", "baseline"}
    assert Counter(arms) == {"target": 9, "baseline": 3}
    assert ann.post(path_of(queue, "next"), {}, format="json").json()["item"] is None
    assert EvaluationTask.objects.filter(label=1, labelled_at__isnull=False).count() == 12


def test_queue__smaller_than_what_is_due__takes_as_many_of_each_arm_by_hash(
    api: APIClient, evaluation: OnlineEvaluation
) -> None:
    by_arm = {variant: [task(evaluation, variant) for _ in range(6)] for variant in ("target", "baseline")}

    queue = make_label_queue(api, evaluation.evaluator, sample_size=4)

    chosen = set(queue.items.values_list("request_id", flat=True))
    assert chosen == {one.request_id for tasks in by_arm.values() for one in tasks[:2]}


def test_queue__smaller_than_what_is_due__completes_the_oldest_minute_first(
    api: APIClient, project: Project, evaluation: OnlineEvaluation
) -> None:
    # A verdict takes a minute when all of its labels are there: by hash alone 4 of 12 labels would complete none.
    end = timezone.now().replace(second=0, microsecond=0)
    minutes = [end - age * MINUTE for age in (1, 2, 3)]
    due = {at: [task(evaluation, arm, due_at=at) for arm in 2 * ("target", "baseline")] for at in minutes}

    queue, ann = make_label_queue(api, evaluation.evaluator, sample_size=4), person_of(project)

    labelled = [give(ann, queue).request_id for _ in range(4)]
    assert set(labelled) == {one.request_id for one in due[minutes[-1]]}


def test_queue__two_people__still_in_turn_while_items_are_open(
    api: APIClient, project: Project, evaluation: OnlineEvaluation
) -> None:
    for variant in ("target", "target", "target", "baseline", "baseline"):
        task(evaluation, variant)
    queue = make_label_queue(api, evaluation.evaluator)

    items = [ReviewItem.objects.get(pk=next_id(person_of(project), queue)) for _ in range(4)]

    assert Counter(map(arm_of, items)) == {"target": 2, "baseline": 2}


def test_queue__while_it_is_open__gets_what_comes_due_up_to_its_size(
    api: APIClient, project: Project, evaluation: OnlineEvaluation
) -> None:
    queue, ann = make_label_queue(api, evaluation.evaluator, sample_size=3), person_of(project)
    assert ann.post(path_of(queue, "next"), {}, format="json").json()["progress"]["items"] == 0
    first = task(evaluation)
    waiting = task(evaluation, state="due", score=None, ended_at=None)
    task(evaluation, label_due=False)
    task(evaluation, state="failed", score=None)

    fill_queues(timezone.now())

    assert list(queue.items.values_list("request_id", flat=True)) == [first.request_id]
    EvaluationTask.objects.filter(pk=waiting.pk).update(state="done", score=0)
    task(evaluation), task(evaluation)
    assert [fill_queues(timezone.now()) for _ in range(2)] == [2, 0]
    ann.post(path_of(queue, "close"), {}, format="json")
    assert fill_queues(timezone.now()) == 0


def test_answer__is_in_one_open_queue_and_goes_on_to_the_next_when_that_is_closed(
    api: APIClient, project: Project, evaluation: OnlineEvaluation
) -> None:
    tasks = [task(evaluation) for _ in range(3)]
    first, second, ann = *(make_label_queue(api, evaluation.evaluator) for _ in range(2)), person_of(project)
    assert (first.items.count(), second.items.count()) == (3, 0)
    labelled = give(ann, first)

    ann.post(path_of(first, "close"), {}, format="json")
    fill_queues(timezone.now())

    left = {one.request_id for one in tasks} - {labelled.request_id}
    assert set(second.items.values_list("request_id", flat=True)) == left
    # Another evaluation that has the same answer due gets the same label.
    other = make_labelled_evaluation(evaluation.evaluator)
    again = make_label_task(other, request_id=min(left))
    give(ann, second), give(ann, second)
    again.refresh_from_db()
    assert (again.label, second.items.count()) == (1, 2)


STORED = b"""{"model": "big-1", "messages": [
    {"role": "system", "content": "Version two."}, {"role": "user", "content": "Where?"}
]}"""


ANSWER = b'{"model": "big-1-2026", "choices": [{"message": {"role": "assistant", "content": "Here."}}]}'


def entry_for_one(evaluator: Evaluator, **values: Any) -> SpoolEntry:
    """Returns a request and its answer which one person labels."""
    while needs_second_person(evaluator.pk, UUID((entry := make_entry(STORED, ANSWER, **values)).record.request_id)):
        pass
    return entry


@pytest.mark.usefixtures("clickhouse")
def test_arm__until_the_label_is_given__is_nowhere_in_the_answers(
    project: Project, spool: Path, evaluation: OnlineEvaluation
) -> None:
    rollout = UUID(int=77)
    entry = entry_for_one(
        evaluation.evaluator,
        project_id=str(project.pk),
        model="big-1",
        prompt_config_id=str(UUID(int=8)),
        prompt_version=41,
        rollout_id=str(rollout),
        variant="target",
    )
    store(spool, entry)
    asked = UUID(entry.record.request_id)
    make_score(project, request_id=str(asked), score_name="polite@1", score_value=0.123, evaluator_type="llm_judge")
    task(evaluation, request_id=asked, rollout_id=rollout, score=0.123)
    ann = person_of(project)
    queue = make_label_queue(ann, evaluation.evaluator)
    item = next_id(ann, queue)

    answers = [
        ann.get(URL),
        ann.get(path_of(queue)),
        ann.get(path_of(queue, "items")),
        ann.get(path_of(queue, "agreement")),
        ann.post(path_of(queue, "next"), {}, format="json"),
        ann.get(path_of(queue, "items", item, "conversation")),
        ann.post(path_of(queue, "items", item, "skip"), {}, format="json"),
        ann.get(path_of(queue, "items")),
    ]

    assert [answer.status_code for answer in answers] == [200] * 8
    for answer in answers:
        text = answer.content.decode()
        for hidden in (
            str(asked),
            str(rollout),
            "target",
            "big-1",
            "Version two",
            "0.123",
            "prompt_version",
            str(UUID(int=8)),
        ):
            assert hidden not in text.replace(item, "").replace(str(queue.pk), ""), text
    assert [turn["role"] for turn in answers[5].json()["turns"]] == ["user", "assistant"]
    shown = score(ann, queue, item, score_value=1).json()
    assert (shown["item"]["request_id"], shown["score"]["request_id"]) == (str(asked), str(asked))
    turns = ann.get(path_of(queue, "items", item, "conversation")).json()["turns"]
    assert [turn["role"] for turn in turns] == ["system", "user", "assistant"]


@tabled
def test_label__of_any_rubric__is_from_0_to_1(
    api: APIClient, project: Project, evaluation: OnlineEvaluation, rubric: dict[str, Any], given: float, label: float
) -> None:
    due = task(evaluation)

    give(person_of(project), make_label_queue(api, evaluation.evaluator, **rubric), given)

    due.refresh_from_db()
    assert due.label == pytest.approx(label)


def test_label__changed__replaces_the_first_in_its_minute_and_is_only_shown_later(
    api: APIClient, project: Project, evaluation: OnlineEvaluation
) -> None:
    due, ann = task(evaluation), person_of(project)
    queue = make_label_queue(api, evaluation.evaluator)
    item = give(ann, queue, 1)
    # The label is that of a minute that is not over, however the clock of this test goes.
    EvaluationTask.objects.update(labelled_at=timezone.now() + MINUTE)

    score(ann, queue, str(item.pk), score_value=0)

    due.refresh_from_db()
    assert due.label == 0
    long_ago = timezone.now() - MINUTE
    EvaluationTask.objects.update(labelled_at=long_ago)
    assert score(ann, queue, str(item.pk), score_value=1).status_code == 200
    due.refresh_from_db()
    assert (due.label, due.labelled_at, Score.objects.get().score_value) == (0, long_ago, 1)


def test_label__later_than_7_days__is_shown_and_does_not_count(
    api: APIClient, project: Project, evaluation: OnlineEvaluation
) -> None:
    open_one, untouched, ann = task(evaluation), task(evaluation), person_of(project)
    queue = make_label_queue(api, evaluation.evaluator)
    item = next_id(ann, queue)
    past = timezone.now() - LABEL_PATIENCE
    EvaluationTask.objects.update(due_at=past)
    ReviewItem.objects.update(counts_until=past)

    fill_queues(timezone.now())
    answered = score(ann, queue, item, score_value=1)

    assert answered.status_code == 200
    assert (Score.objects.count(), queue.items.count()) == (1, 1)
    for one in (open_one, untouched):
        one.refresh_from_db()
        assert (one.label, one.labelled_at) == (None, None)
    found = api.get(f"/api/llm/online-evaluations/{evaluation.pk}").json()["labels"]
    assert found == {"sampled": 2, "due": 0, "given": 0, "missing": 2}


def test_labels__of_an_evaluation__are_counted(api: APIClient, project: Project, evaluation: OnlineEvaluation) -> None:
    task(evaluation), task(evaluation), task(evaluation, state="due", score=None)
    task(evaluation, state="failed", score=None), task(evaluation, label_due=False)
    give(person_of(project), make_label_queue(api, evaluation.evaluator))

    found = api.get(f"/api/llm/online-evaluations/{evaluation.pk}").json()["labels"]

    assert found == {"sampled": 4, "due": 2, "given": 1, "missing": 1}


@pytest.mark.django_db(transaction=True)
def test_queues_and_people_at_once__each_answer_labelled_once_and_nobody_waits_for_another(project: Project) -> None:
    evaluation = make_labelled_evaluation(make_evaluator(project))
    for place in range(40):
        task(evaluation, ("target", "baseline")[place % 2])
    api = client_of(project)
    queues = [make_label_queue(api, evaluation.evaluator, sample_size=20) for _ in range(2)]
    queues[1].items.all().delete()
    people = [person_of(project) for _ in range(4)]

    def work(number: int) -> int:
        queue, given = queues[number % 2], 0
        while True:
            fill_queues(timezone.now())
            item = people[number].post(path_of(queue, "next"), {}, format="json").json()["item"]
            if item is None:
                return given
            assert score(people[number], queue, item["id"], score_value=1).status_code == 200
            given += 1

    assert sum(at_once(4, work)) == 40
    assert EvaluationTask.objects.filter(label=1).count() == Score.objects.count() == 40
    assert ReviewItem.objects.values("request_id").distinct().count() == 40


def test_second_opinion__is_asked_of_a_tenth_by_hash(evaluator: Evaluator) -> None:
    count = 20_000
    asked = sum(needs_second_person(evaluator.pk, UUID(int=place)) for place in range(count))

    assert abs(asked - SECOND_OPINIONS * count) <= 5 * (count * SECOND_OPINIONS * (1 - SECOND_OPINIONS)) ** 0.5


def test_second_opinion__is_another_persons_compared_and_no_label(
    api: APIClient, project: Project, evaluation: OnlineEvaluation
) -> None:
    due = task(evaluation, request_id=request_id(evaluation.evaluator, is_second_needed=True))
    plain = task(evaluation)
    queue, ann, ben = make_label_queue(api, evaluation.evaluator), person_of(project), person_of(project)
    first = give(ann, queue, 1)
    second = queue.items.get(opinion=2)

    assert first.request_id == due.request_id == second.request_id
    assert score(ann, queue, str(second.pk), score_value=1).json()["error"]["code"] == "review_item_taken"
    shown = {row["id"]: row["request_id"] for row in ann.get(path_of(queue, "items")).json()["results"]}
    # What the first person scored is hidden again while it waits for the second one.
    assert set(shown.values()) == {None}
    assert give(ann, queue, 1).request_id == plain.request_id
    assert ann.post(path_of(queue, "next"), {}, format="json").json()["item"] is None
    assert ann.get(path_of(queue, "agreement")).json()["people"] is None
    assert give(ben, queue, 0).pk == second.pk

    people = ann.get(path_of(queue, "agreement")).json()["people"]
    assert (people["compared"], people["equal"]["value"]) == (1, 0)
    due.refresh_from_db()
    assert (due.label, Score.objects.count()) == (1, 3)
    calibration = api.get(f"/api/llm/evaluators/{evaluation.evaluator_id}/calibration").json()
    assert calibration["labelled"] == 2
    shown = {row["id"]: row["request_id"] for row in ann.get(path_of(queue, "items")).json()["results"]}
    assert shown[str(second.pk)] == str(due.request_id)


@pytest.mark.parametrize(
    ("answers", "differ", "agreed"), [(15, 0, True), (14, 0, False), (20, 2, True), (20, 9, False)]
)
def test_second_opinions__of_several_queues__agree_beyond_chance(
    project: Project, evaluator: Evaluator, answers: int, differ: int, agreed: bool
) -> None:
    queues = [make_queue(project, items=0, evaluator=evaluator, due_labels=True) for _ in range(2)]
    for place in range(answers):
        queue, request = queues[place % 2], uuid4()
        first = place % 3 > 0
        for opinion, is_good in ((1, first), (2, first is (place >= differ))):
            given = make_score(
                project, request_id=str(request), score_name="helpful", score_type="boolean", score_value=float(is_good)
            )
            ReviewItem.objects.create(
                queue=queue, position=2 * place + opinion, request_id=request, ts=timezone.now(), opinion=opinion,
                state="done", score_id=given.pk,
            )  # fmt: skip
    assert people_agree(project.pk, evaluator.pk) is agreed
    assert not people_agree(project.pk, uuid4())


def test_second_opinions__are_not_assigned(api: APIClient, project: Project, evaluation: OnlineEvaluation) -> None:
    task(evaluation, request_id=request_id(evaluation.evaluator, is_second_needed=True))
    queue, ann = make_label_queue(api, evaluation.evaluator), person_of(project, name="ann")
    give(ann, queue)

    answered = api.post(path_of(queue, "assign"), {"assignee": "ann"}, format="json")

    assert answered.json() == {"assigned": 0}


@pytest.mark.usefixtures("clickhouse")
def test_request__deleted__loses_score_item_and_id_and_its_task_stays_in_the_counts(
    api: APIClient, project: Project, spool: Path, evaluation: OnlineEvaluation
) -> None:
    entries = [make_entry(project_id=str(project.pk)) for _ in range(2)]
    store(spool, *entries)
    labelled, claimed = (task(evaluation, request_id=UUID(entry.record.request_id)) for entry in entries)
    queue = make_label_queue(api, evaluation.evaluator)
    ann = person_of(project)
    give(ann, queue), give(ann, queue)
    EvaluationTask.objects.filter(pk=claimed.pk).update(state="due", claim=uuid4())

    for entry in entries:
        delete_request(project.pk, UUID(entry.record.request_id), actor="test")
    fill_queues(timezone.now())

    # The worker that judges the other one finds that it is ended.
    left = EvaluationTask.objects.order_by("pk")
    assert [(one.pk, one.state, one.reason, one.label_due, one.label) for one in left] == [
        (labelled.pk, "done", "", True, 1.0),
        (claimed.pk, "skipped", "no_text", True, 1.0),
    ]
    assert not {str(one.request_id) for one in left} & {entry.record.request_id for entry in entries}
    assert not Score.objects.exists()
    assert not queue.items.exists()


def test_restart__in_the_middle__leaves_all_or_nothing_and_goes_on(
    api: APIClient, project: Project, evaluation: OnlineEvaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue, ann = make_label_queue(api, evaluation.evaluator), person_of(project, name="ann")
    due = [task(evaluation, variant) for variant in ("target", "baseline", "target")]
    create, second = ReviewItem.objects.bulk_create, due_labels.ask_second_person

    def dying(*given: Any, **options: Any) -> None:
        create(list(given[0])[:1], **options)
        raise KeyboardInterrupt

    def dying_later(*given: Any) -> None:
        second(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(ReviewItem.objects, "bulk_create", dying)
        fill_queues(timezone.now())
    assert not queue.items.exists()
    fill_queues(timezone.now())
    assert sorted(queue.items.values_list("request_id", flat=True)) == sorted(one.request_id for one in due)

    item = next_id(ann, queue)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(due_labels, "ask_second_person", dying_later)
        answer = services.Answer(1)
        services.score_item(
            project_id=project.pk, queue_id=queue.pk, item_id=UUID(item), answer=answer, actor="user:ann"
        )
    assert not Score.objects.exists() and not EvaluationTask.objects.filter(labelled_at__isnull=False).exists()
    # The person still has the item, and gives the label.
    assert str(give(ann, queue).pk) == item
    assert EvaluationTask.objects.filter(label=1).count() == 1


def test_queue__that_cannot_be__is_refused_by_field(api: APIClient, project: Project, evaluator: Evaluator) -> None:
    foreign = make_labelled_evaluation(make_evaluator(make_project())).evaluator
    cases: tuple[tuple[dict[str, Any], str, str], ...] = (
        ({"evaluator_id": None}, "evaluator_id", "due labels"),
        ({"evaluator_id": str(evaluator.pk)}, "evaluator_id", "label_share"),
        ({"evaluator_id": str(foreign.pk)}, "evaluator_id", "no such evaluator"),
        ({"evaluator_id": str(evaluator.pk), "filter": {"user_id": "ann"}}, "filter", "chosen with the sample"),
        ({"evaluator_id": str(evaluator.pk), "kind": "category", "labels": ["a", "b"]}, "kind", "booleans"),
        ({"evaluator_id": str(evaluator.pk), "due_labels": "often"}, "due_labels", ""),
    )
    for fields, named, said in cases:
        answered = api.post(URL, queue_body(**{"due_labels": True, **fields}), format="json")
        assert answered.status_code == 400, answered.content
        message = answered.json()["error"]["message"]
        assert message.startswith(named) and said in message
    assert not ReviewQueue.objects.exists()


def test_queue__of_a_paused_evaluation__is_made_while_labels_are_due(
    api: APIClient, evaluation: OnlineEvaluation
) -> None:
    task(evaluation)
    OnlineEvaluation.objects.update(state="paused")

    assert make_label_queue(api, evaluation.evaluator).items.count() == 1


def test_item__added_by_hand__is_refused(api: APIClient, evaluation: OnlineEvaluation) -> None:
    queue = make_label_queue(api, evaluation.evaluator)

    answered = api.post(path_of(queue, "items"), {"request_id": str(uuid4())}, format="json")

    assert answered.status_code == 400 and answered.json()["error"]["message"].startswith("request_id")


@pytest.mark.usefixtures("clickhouse")
def test_dataset__of_a_queue__has_only_what_is_labelled(
    api: APIClient, project: Project, spool: Path, evaluation: OnlineEvaluation
) -> None:
    entries = [entry_for_one(evaluation.evaluator, project_id=str(project.pk)) for _ in range(2)]
    store(spool, *entries)
    for entry in entries:
        asked_at = datetime.fromtimestamp(entry.record.ts / 1_000_000, UTC)
        task(evaluation, request_id=UUID(entry.record.request_id), requested_at=asked_at)
    queue = make_label_queue(api, evaluation.evaluator)
    made = api.post("/api/llm/datasets", {"name": "labelled"}, format="json").json()["id"]
    body = {"queue_id": str(queue.pk), "states": ["open", "done"]}

    refused = api.post(f"/api/llm/datasets/{made}/items/from-review", body, format="json")
    labelled = give(person_of(project), queue)
    added = api.post(f"/api/llm/datasets/{made}/items/from-review", body, format="json")

    assert added.status_code == 201, added.content
    assert refused.status_code == 400, refused.content
    [item] = api.get(f"/api/llm/datasets/{made}/items").json()["results"]
    assert item["source_request_id"] == str(labelled.request_id)


def test_roles__readers_see_progress_and_editors_label(project: Project, evaluation: OnlineEvaluation) -> None:
    task(evaluation)
    editor, reader = person_of(project), person_of(project, Role.READER_WITHOUT_CONTENT)
    queue = make_label_queue(editor, evaluation.evaluator)
    item = str(queue.items.get().pk)
    body = queue_body(evaluator_id=str(evaluation.evaluator_id), due_labels=True)

    assert reader.get(path_of(queue)).json()["progress"]["open"] == 1
    assert reader.get(path_of(queue, "items")).json()["results"][0]["request_id"] is None
    assert reader.get(path_of(queue, "items", item, "conversation")).status_code == 403
    assert reader.post(URL, body, format="json").status_code == 403
    assert score(reader, queue, item, score_value=1).status_code == 403
    assert person_of(make_project()).get(path_of(queue, "items", item, "conversation")).status_code == 404
    assert json.loads(json.dumps(editor.get(path_of(queue)).json()))["due_labels"] is True
