"""The scores of answers: evaluators of all sorts, failures, deaths of workers, a project without texts."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from core.ledger import NOTHING
from core.roles import Role
from gateway.experiments import queue, report
from gateway.models import Experiment, ExperimentAnswer, ExperimentScore
from tests.factories.core import make_staff
from tests.factories.evaluators import make_evaluator
from tests.factories.settings import make_settings
from tests.fakes.scripted import Step, answer, status
from tests.fakes.upstream import Connection, Received
from tests.gateway.experiments.conftest import PATH, Scene, by_request, kind_of, run_all

CRITERIA = [
    {
        "name": "kind",
        "meaning": "It is kind.",
        "labels": [
            {"name": "good", "meaning": "It is.", "score": 1.0},
            {"name": "bad", "meaning": "It is not.", "score": 0.0},
        ],
    }
]


def judging(body: dict[str, Any]) -> str:
    """Answers by the temperature, as a judge that finds the warmer answer good."""
    kind = kind_of(body)
    if kind == "grades":
        asked = json.loads(body["messages"][-1]["content"])
        label = "good" if "warm" in asked["answer"]["content"] else "bad"
        return json.dumps({"kind": {"reason": f"It is {label}.", "label": label}})
    if kind == "comparison":
        asked = json.loads(body["messages"][-1]["content"])
        better = "first" if "warm" in asked["first"]["content"] else "second"
        return json.dumps({"reason": "It is warmer.", "better": better})
    return "Tomorrow, warm regards." if body.get("temperature") else "Tomorrow."


def failing_judge(*failures: Step) -> Step:
    """Returns a step whose judge fails at first."""
    left = list(failures)

    async def step(request: Received, connection: Connection) -> None:
        is_judge = kind_of(json.loads(request.body)) != "answer"
        await (left.pop(0) if is_judge and left else by_request(judging))(request, connection)

    return step


def _chosen(*evaluators: Any) -> list[dict[str, Any]]:
    return [{"evaluator_id": str(evaluator.pk)} for evaluator in evaluators]


def _scores(items: list[dict[str, Any]]) -> list[list[tuple[float | None, str | None]]]:
    """Returns the values and reasons by answer."""
    return [[(score["value"], score["reason"]) for score in one["scores"]] for item in items for one in item["answers"]]


@pytest.mark.parametrize("scene", [[by_request(judging)]], indirect=True)
def test_experiment__evaluators__score_every_answer_in_their_order(scene: Scene) -> None:
    rule = make_evaluator(scene.project, "equals", name="exact", ignore_case=True)
    judge = make_evaluator(scene.project, "judge", name="kind", criteria=CRITERIA, model="openai/gpt-4.1")
    pair = make_evaluator(scene.project, "pairwise", name="warmer", question="Warmer?", model="openai/gpt-4.1")
    dataset = scene.dataset("Where?", "When?")

    found = scene.over(dataset, {}, {"temperature": 1}, evaluators=_chosen(rule, judge, pair))

    assert (found["state"], found["done_count"], found["baseline"]) == ("completed", 4, "A")
    for item in scene.items(found["id"]):
        baseline, target = item["answers"]
        assert [(one["evaluator"], one["value"]) for one in baseline["scores"]] == [("exact@1", 1.0), ("kind@1", 0.0)]
        assert [(one["evaluator"], one["value"]) for one in target["scores"]] == [
            ("exact@1", 0.0),
            ("kind@1", 1.0),
            ("warmer@1", 1.0),
        ]
        assert target["scores"][1]["detail"] == "kind: It is good."
        assert len(target["scores"][2]["request_ids"]) == 2
    assert (len(scene.of_kind("answer")), len(scene.of_kind("grades")), len(scene.of_kind("comparison"))) == (4, 4, 4)


def test_experiment__past_requests__are_scored_alike(scene: Scene) -> None:
    scene.past()
    contains = make_evaluator(scene.project, value="tomorrow")

    made = scene.create(evaluators=_chosen(contains))
    run_all()

    assert _scores(scene.items(made["id"])) == [[(1.0, "The text is there.")], [(1.0, "The text is there.")]]


@pytest.mark.parametrize("scene", [[by_request(judging)]], indirect=True)
def test_experiment__repeats__each_answer_is_compared_with_that_of_its_repeat(scene: Scene) -> None:
    pair = make_evaluator(scene.project, "pairwise", question="Warmer?", model="openai/gpt-4.1")
    dataset = scene.dataset("Where?")

    found = scene.over(dataset, {"temperature": 1}, {}, repeats=2, evaluators=_chosen(pair))

    assert [len(scores) for scores in _scores(scene.items(found["id"]))] == [0, 0, 1, 1]
    assert set(ExperimentScore.objects.values_list("value", flat=True)) == {0.0}
    assert len(scene.of_kind("comparison")) == 4


@pytest.mark.parametrize("scene", [[status(400)]], indirect=True)
def test_answer__refused_for_a_reason_that_stays__is_a_bad_one(scene: Scene) -> None:
    contains = make_evaluator(scene.project, value="tomorrow")

    found = scene.over(scene.dataset("Where?"), evaluators=_chosen(contains))

    assert (found["state"], len(scene.sent())) == ("completed", 1)
    assert _scores(scene.items(found["id"])) == [[(0.0, "not_answered")]]


@pytest.mark.parametrize("scene", [[status(500), status(503), answer("Tomorrow.")]], indirect=True)
def test_answer__provider_away_for_a_moment__is_asked_again(scene: Scene) -> None:
    make_settings(scene.project, retry_enabled=False)
    contains = make_evaluator(scene.project, value="tomorrow")

    found = scene.over(scene.dataset("Where?"), evaluators=_chosen(contains))

    assert (found["state"], len(scene.sent())) == ("completed", 3)
    assert _scores(scene.items(found["id"])) == [[(1.0, "The text is there.")]]


def _fails_for(text: str) -> Step:
    async def step(request: Received, connection: Connection) -> None:
        is_bad = text in request.body.decode()
        await (status(500) if is_bad else answer("Tomorrow."))(request, connection)

    return step


@pytest.mark.parametrize("scene", [[_fails_for("Question 3")]], indirect=True)
def test_answer__provider_fails_it_every_time__its_score_is_missing(scene: Scene) -> None:
    make_settings(scene.project, retry_enabled=False)
    contains = make_evaluator(scene.project, value="tomorrow")
    dataset = scene.dataset(*(f"Question {number}" for number in range(1, 6)))

    found = scene.over(dataset, evaluators=_chosen(contains))

    assert (found["state"], len(scene.sent())) == ("completed", 4 + 4)
    missing = [one for one in _scores(scene.items(found["id"])) if one[0][0] is None]
    assert missing == [[(None, "answer_failed")]]


@pytest.mark.parametrize("scene", [[status(500)]], indirect=True)
def test_experiment__provider_down__ends_as_failed_before_all_are_tried(scene: Scene) -> None:
    make_settings(scene.project, retry_enabled=False)
    contains = make_evaluator(scene.project, value="tomorrow")
    dataset = scene.dataset(*(f"Question {number}" for number in range(40)))

    found = scene.over(dataset, evaluators=_chosen(contains))

    assert (found["state"], found["failure_code"], found["verdict"]) == ("failed", "provider", None)
    assert "answers of A failed" in found["failure"]
    # More than a fifth is nine answers, with four tries each; up to four answers are under way then.
    assert 36 <= len(scene.sent()) <= 4 * (9 + 4)


@pytest.mark.parametrize("scene", [[*[answer("Tomorrow.")] * 10, status(500)]], indirect=True)
def test_experiment__provider_goes_down_in_the_middle__ends_and_keeps_what_is_there(scene: Scene) -> None:
    make_settings(scene.project, retry_enabled=False)
    contains = make_evaluator(scene.project, value="tomorrow")
    dataset = scene.dataset(*(f"Question {number}" for number in range(40)))

    found = scene.over(dataset, evaluators=_chosen(contains))

    assert (found["state"], found["failure_code"], found["verdict"]) == ("failed", "provider", None)
    values = [one[0] for one in _scores(scene.items(found["id"])) if one]
    assert values.count((1.0, "The text is there.")) == 10
    assert {one[1] for one in values} <= {"The text is there.", "answer_failed"}


@pytest.mark.parametrize("scene", [[failing_judge(status(500), status(500), answer("no JSON"))]], indirect=True)
def test_judge__fails_and_talks_nonsense__is_asked_again(scene: Scene) -> None:
    make_settings(scene.project, retry_enabled=False)
    judge = make_evaluator(scene.project, "judge", criteria=CRITERIA, model="openai/gpt-4.1")

    found = scene.over(scene.dataset("Where?"), {"temperature": 1}, evaluators=_chosen(judge))

    assert found["state"] == "completed"
    assert _scores(scene.items(found["id"])) == [[(1.0, "kind: good")]]
    assert len(scene.of_kind("grades")) == 4


@pytest.mark.parametrize("scene", [[failing_judge(*[answer("no JSON")] * 9)]], indirect=True)
def test_judge__always_talks_nonsense__the_score_is_missing_with_its_reason(scene: Scene) -> None:
    judge = make_evaluator(scene.project, "judge", criteria=CRITERIA, model="openai/gpt-4.1")

    found = scene.over(scene.dataset("Where?"), {"temperature": 1}, evaluators=_chosen(judge))

    assert found["state"] == "completed"
    assert _scores(scene.items(found["id"])) == [[(None, "judge_failed")]]


def test_experiment__project_that_stores_no_texts__has_no_scores_and_says_why(scene: Scene) -> None:
    make_settings(scene.project, log_content=False)
    contains = make_evaluator(scene.project, value="tomorrow")

    found = scene.over(scene.dataset("Where?"), evaluators=_chosen(contains))

    assert _scores(scene.items(found["id"])) == [[(None, "no_text")]]


@pytest.mark.parametrize("scene", [[by_request(judging)]], indirect=True)
def test_experiment__worker_died_while_scoring__gives_only_the_scores_that_are_missing(scene: Scene) -> None:
    judge = make_evaluator(scene.project, "judge", name="a", criteria=CRITERIA, model="openai/gpt-4.1")
    other = make_evaluator(scene.project, "judge", name="b", criteria=CRITERIA, model="openai/gpt-4.1-mini")
    dataset = scene.dataset("Where?")
    made = scene.over(dataset, evaluators=_chosen(judge, other))
    # What a worker leaves behind that died between the two scores.
    ExperimentScore.objects.filter(evaluator=1).delete()
    ExperimentAnswer.objects.update(state="scoring")
    died = timezone.now() - timedelta(seconds=1)
    Experiment.objects.update(state="running", ended_at=None, claimed_until=died, reuse=False)
    asked = len(scene.of_kind("grades"))

    run_all()

    assert scene.experiment(made["id"])["state"] == "completed"
    assert [body["model"] for body in scene.of_kind("grades")[asked:]] == ["gpt-4.1-mini"]
    assert ExperimentScore.objects.count() == 2


def test_experiment__verdict_is_there_early__cancels_the_rest(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    contains = make_evaluator(scene.project, value="tomorrow")
    dataset = scene.dataset(*(f"Question {number}" for number in range(30)))
    looks: list[Any] = []
    concluded: list[Any] = []

    def look(experiment_id: Any) -> bool:
        looks.append(experiment_id)
        return len(looks) == 3

    monkeypatch.setattr(report, "look", look)
    monkeypatch.setattr(report, "conclude", concluded.append)

    found = scene.over(dataset, evaluators=_chosen(contains))

    assert (found["state"], found["stopped_early"]) == ("completed", True)
    assert (len(looks), len(concluded)) == (3, 1)
    assert len(scene.sent()) <= 12
    assert ExperimentAnswer.objects.filter(state="cancelled").count() >= 18


def test_reader_without_content__scores__have_no_detail(scene: Scene) -> None:
    contains = make_evaluator(scene.project, value="tomorrow")
    found = scene.over(scene.dataset("Where?"), evaluators=_chosen(contains))
    ExperimentScore.objects.update(detail="It says tomorrow.")
    reader = APIClient()
    reader.force_login(make_staff(Role.READER_WITHOUT_CONTENT, scene.project))

    details = []
    for client in (scene.api, reader):
        answered = client.get(f"{PATH}/{found['id']}/items", headers={"x-project-id": str(scene.project.pk)})
        details.append(answered.json()["results"][0]["answers"][0]["scores"][0]["detail"])

    assert details == ["It says tomorrow.", None]


def test_claims__answers_of_an_item__are_scored_once_all_are_there(scene: Scene) -> None:
    contains = make_evaluator(scene.project, value="tomorrow")
    dataset = scene.dataset("Where?")
    made = scene.create({}, {"temperature": 1}, dataset_id=str(dataset.pk), evaluators=_chosen(contains))
    claimed = queue.claim_experiment()
    assert claimed is not None
    first, second = queue.claim_answer(claimed.pk), queue.claim_answer(claimed.pk)
    assert first is not None and second is not None and queue.claim_answer(claimed.pk) is None

    queue.store_answer(first, is_scored=True, cost=NOTHING)
    assert queue.claim_scoring(claimed.pk) == []
    queue.store_answer(second, is_scored=True, cost=NOTHING)
    assert len(queue.claim_scoring(claimed.pk)) == 2
    assert queue.claim_scoring(claimed.pk) == []
    assert scene.experiment(made["id"])["done_count"] == 0
