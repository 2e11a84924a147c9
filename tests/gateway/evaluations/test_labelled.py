"""The answers that people labelled for an evaluator are scored once, and the anchors of a judge again every day."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from analytics.evaluators.calibration import due
from analytics.evaluators.calibration.due import claim_due
from analytics.evaluators.own_scores import new_score
from analytics.models import EvaluatorVersion, ReviewItem, Score
from analytics.models.reviews import ItemState
from gateway.evaluations.labelled import score_labelled
from tests.factories.reviews import make_queue
from tests.factories.scores import make_score
from tests.fakes.scripted import answer, status
from tests.gateway.evaluations.conftest import Scene

pytestmark = pytest.mark.django_db(transaction=True)

JUDGE = "openai/judge-1"
POLITE = {
    "name": "polite",
    "meaning": "It is polite.",
    "labels": [{"name": "yes", "meaning": "It is.", "score": 1}, {"name": "no", "meaning": "It is not.", "score": 0}],
}
YES, NO = (answer(json.dumps({"polite": {"reason": "So it is.", "label": label}})) for label in ("yes", "no"))
DAY = timedelta(days=1, seconds=1)


def labelled(scene: Scene, evaluator_id: str, *request_ids: str, is_good: bool = True) -> None:
    """Has people label these requests for an evaluator."""
    queue = make_queue(scene.project, request_ids=request_ids, evaluator_id=UUID(evaluator_id))
    for item in ReviewItem.objects.filter(queue=queue):
        score = make_score(
            scene.project,
            request_id=str(item.request_id),
            score_name="helpful",
            score_value=float(is_good),
            score_type="boolean",
            evaluator_type="human",
        )
        item.state, item.score_id, item.reviewed_at = ItemState.DONE, score.pk, timezone.now()
        item.save()


def judge(scene: Scene) -> str:
    return scene.evaluator("judge", criteria=[POLITE], model=JUDGE)


def scores(name: str) -> list[tuple[str, float, str, str]]:
    """Returns the scores of that name, in order, as request, value, evaluator type and model."""
    rows = Score.objects.filter(score_name=name).order_by("created_at")
    return [(one.request_id, one.score_value, one.evaluator_type, one.judge_model) for one in rows]


def calibration(scene: Scene, evaluator_id: str) -> dict[str, Any]:
    found: dict[str, Any] = scene.api.get(f"/api/llm/evaluators/{evaluator_id}/calibration").json()
    return found


def run_all(now: datetime) -> int:
    """Scores until nothing is due; returns how often something was."""
    runs = 0
    while score_labelled(now):
        runs += 1
        assert runs < 100
    return runs


@pytest.mark.parametrize("scene", [[YES]], indirect=True)
def test_labelled_answer__is_judged_once_and_is_in_the_calibration(scene: Scene) -> None:
    evaluator_id, request_id = judge(scene), scene.answered()
    labelled(scene, evaluator_id, request_id)

    assert run_all(timezone.now()) == 1

    assert scores("judge@1") == [(request_id, 1, "llm_judge", "judge-1")]
    found = calibration(scene, evaluator_id)
    assert (found["labelled"], found["compared"], found["judge_models"]) == (1, 1, ["judge-1"])
    assert len(scene.script.received) == 1


@pytest.mark.parametrize("scene", [[YES, NO]], indirect=True)
def test_anchor__judged_again_after_a_day__flips_and_its_first_verdict_stays(scene: Scene) -> None:
    evaluator_id, request_id, now = judge(scene), scene.answered(), timezone.now()
    labelled(scene, evaluator_id, request_id)

    assert run_all(now) == 1
    assert run_all(now + DAY / 2) == 0
    assert run_all(now + DAY) == 1
    assert run_all(now + 2 * DAY) == 1

    assert [one[:2] for one in scores("judge@1")] == [(request_id, 1), (request_id, 0)]
    assert calibration(scene, evaluator_id)["flips"] == {"judged_again": 1, "to_good": 0, "to_bad": 1, "evidence": 1}


@pytest.mark.parametrize("scene", [[YES, YES, NO]], indirect=True)
def test_anchor__of_a_judge_that_was_renamed__is_judged_again_and_not_as_if_for_the_first_time(scene: Scene) -> None:
    evaluator_id, request_id, now = judge(scene), scene.answered(), timezone.now()
    labelled(scene, evaluator_id, request_id)
    assert (run_all(now), run_all(now + DAY)) == (1, 1)

    scene.api.patch(f"/api/llm/evaluators/{evaluator_id}", {"name": "courteous"}, format="json")

    assert run_all(now + 2 * DAY) == 1
    assert calibration(scene, evaluator_id)["flips"]["to_bad"] == 1
    assert len(scene.script.received) == 3
    labelled(scene, evaluator_id, scene.answered())
    scene.script.steps[:] = [YES]
    assert run_all(now + 2 * DAY) == 1
    assert len(scores("courteous@1")) == 1


@pytest.mark.parametrize("scene", [[YES]], indirect=True)
def test_anchors__another_model_has_answered__are_judged_again_within_the_day(scene: Scene) -> None:
    evaluator_id, request_id, now = judge(scene), scene.answered(), timezone.now()
    labelled(scene, evaluator_id, request_id)
    assert run_all(now) == 1
    own = {"score_name": "judge@1", "evaluator_type": "llm_judge"}
    make_score(scene.project, request_id=scene.answered(), judge_model="judge-2", **own)

    assert run_all(now + timedelta(minutes=59)) == 0
    assert run_all(now + timedelta(hours=2)) == 1
    assert run_all(now + timedelta(hours=2, minutes=59)) == 0


@pytest.mark.parametrize("scene", [[NO] * 8], indirect=True)
def test_judge__that_turns_on_all_its_anchors__has_drifted(scene: Scene) -> None:
    evaluator_id, now = judge(scene), timezone.now()
    request_ids = [scene.answered() for _ in range(8)]
    labelled(scene, evaluator_id, *request_ids)
    for request_id in request_ids:
        make_score(scene.project, request_id=request_id, score_name="judge@1", evaluator_type="llm_judge")

    assert run_all(now) == 1

    found = calibration(scene, evaluator_id)
    assert (found["state"], found["flips"]["to_bad"]) == ("drifted", 8)


def test_rule__scores_each_label_once_in_pieces_and_never_again(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(due, "AT_ONCE", 2)
    evaluator_id, now = scene.evaluator("contains", value="seven"), timezone.now()
    request_ids = [scene.answered(text) for text in ("At seven.", "At eight.", "At seven.")]
    labelled(scene, evaluator_id, *request_ids)

    assert run_all(now) == 2
    assert run_all(now + DAY) == 0

    assert [(value, kind) for _, value, kind, _ in scores("contains@1")] == [(1, "code"), (0, "code"), (1, "code")]
    labelled(scene, evaluator_id, scene.answered("At seven."))
    assert run_all(now + DAY) == 1
    assert len(scores("contains@1")) == 4


@pytest.mark.parametrize("scene", [[status(500), status(500), status(500), YES]], indirect=True)
def test_judge__that_fails__is_asked_again_the_next_day_and_not_before(scene: Scene) -> None:
    evaluator_id, now = judge(scene), timezone.now()
    labelled(scene, evaluator_id, scene.answered())

    runs = [run_all(now + number * timedelta(hours=1)) for number in range(3)]

    assert runs == [1, 0, 0]
    assert scores("judge@1") == []
    scene.script.steps[:] = [YES]
    assert run_all(now + DAY) == 1
    assert len(scores("judge@1")) == 1


def test_evaluators__archived_unlabelled_or_in_need_of_an_expected_answer__ask_for_nothing(scene: Scene) -> None:
    archived, wanting = judge(scene), scene.evaluator("equals")
    scene.evaluator("regex", pattern="x")
    for evaluator_id in (archived, wanting):
        labelled(scene, evaluator_id, scene.answered())
    scene.api.patch(f"/api/llm/evaluators/{archived}", {"state": "archived"}, format="json")

    assert run_all(timezone.now()) == 0
    assert scene.script.received == []


@pytest.mark.parametrize("scene", [[YES]], indirect=True)
def test_labels__older_than_a_calibration__ask_for_nothing(scene: Scene) -> None:
    evaluator_id = judge(scene)
    labelled(scene, evaluator_id, scene.answered())

    assert run_all(timezone.now() + timedelta(days=31)) == 0


def test_claim__two_workers_at_once__one_has_it(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluator_id, now = scene.evaluator("contains", value="seven"), timezone.now()
    labelled(scene, evaluator_id, scene.answered())
    claim = due._claim

    def later(row: EvaluatorVersion, values: dict[str, Any]) -> bool:
        monkeypatch.setattr(due, "_claim", claim)
        assert claim_due(now) is not None
        return claim(row, values)

    monkeypatch.setattr(due, "_claim", later)

    assert claim_due(now) is None


def test_answer__deleted_while_it_is_judged__gets_no_score(scene: Scene) -> None:
    evaluator_id, request_id = scene.evaluator("contains", value="seven"), scene.answered()
    labelled(scene, evaluator_id, request_id)
    claimed = claim_due(timezone.now())
    assert claimed is not None and claimed.first == [UUID(request_id)]
    assert scene.api.delete(f"/api/llm/requests/{request_id}").status_code == 204

    due.record(claimed, {UUID(request_id): new_score(claimed.version, UUID(request_id), 1.0, kind="label")})

    assert scores("contains@1") == []
