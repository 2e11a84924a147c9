"""The agreement of reviewers and judges, against figures worked out by hand or by other libraries."""

from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from analytics.agreement import cohens_kappa, equal_share, mean_difference, pearson
from core.models import Project
from tests.factories.reviews import make_queue
from tests.factories.scores import make_score

YES, NO = "yes", "no"
# The example of two readers of fifty grant proposals that texts on Cohen's kappa use: 20 and 15 alike, kappa 0.4.
_GRANTS = [(YES, YES)] * 20 + [(YES, NO)] * 5 + [(NO, YES)] * 10 + [(NO, NO)] * 15


def test_kappa__known_example__its_value_and_interval() -> None:
    found = cohens_kappa(_GRANTS)

    assert found is not None and found.low is not None and found.high is not None
    assert found.value == pytest.approx(0.4)
    assert (found.low, found.high) == pytest.approx((0.1460, 0.6540), abs=1e-3)


def test_kappa__perfect_opposite_and_single_verdict() -> None:
    assert cohens_kappa([(YES, YES), (NO, NO)]).value == 1  # type: ignore[union-attr]  # there are two verdicts
    assert cohens_kappa([(YES, NO), (NO, YES)]).value == -1  # type: ignore[union-attr]  # there are two verdicts
    assert cohens_kappa([(YES, YES)] * 9) is None
    assert cohens_kappa([]) is None


def test_share__of_equal_pairs__wilson_interval() -> None:
    found = equal_share(_GRANTS)

    assert found is not None and found.value == pytest.approx(0.7)
    assert (found.low, found.high) == pytest.approx((0.5624, 0.8090), abs=1e-3)
    assert equal_share([]) is None


def test_correlation__known_pairs__value_and_fisher_interval() -> None:
    pairs = [(1.0, 2.0), (2.0, 1.0), (3.0, 4.0), (4.0, 3.0), (5.0, 5.0)]

    found = pearson(pairs)

    assert found is not None and found.low is not None and found.high is not None
    assert found.value == pytest.approx(0.8)
    assert (found.low, found.high) == pytest.approx((-0.2796, 0.9861), abs=1e-3)
    assert mean_difference(pairs) == pytest.approx(0.8)


@pytest.mark.parametrize("pairs", [[], [(1.0, 1.0)], [(1.0, 1.0), (1.0, 2.0)]])
def test_correlation__too_few_or_no_variance__none(pairs: list[tuple[float, float]]) -> None:
    assert pearson(pairs) is None


def test_agreement__judge_of_the_same_name__latest_score_of_each_request_counts(
    api: APIClient, project: Project
) -> None:
    ids = [f"019aa000-0000-7000-8000-00000000000{place}" for place in range(4)]
    queue = make_queue(project, request_ids=ids, kind="boolean", score_name="helpful")
    for item, value in zip(queue.items.order_by("position"), (1, 1, 0), strict=False):
        answer = api.post(f"/api/llm/reviews/{queue.pk}/items/{item.pk}/score", {"score_value": value}, format="json")
        assert answer.status_code == 200
    judged = {"score_name": "helpful", "score_type": "boolean", "evaluator_type": "llm_judge"}
    make_score(project, request_id=ids[0], score_value=0, **judged)
    for request_id, value in zip(ids, (1, 0, 0, 1), strict=True):
        make_score(project, request_id=request_id, score_value=value, **judged)
    make_score(project, request_id=ids[0], score_value=0, **{**judged, "score_name": "polite"})
    make_score(project, request_id=ids[0], score_value=50, **{**judged, "score_type": "number"})

    body = api.get(f"/api/llm/reviews/{queue.pk}/agreement").json()

    assert (body["reviewed"], body["score_name"], body["compared_score_name"]) == (3, "helpful", "helpful")
    (judge,) = body["evaluators"]
    assert (judge["evaluator_type"], judge["compared"]) == ("llm_judge", 3)
    assert judge["equal"]["value"] == pytest.approx(2 / 3)
    assert judge["kappa"]["value"] == pytest.approx(0.4)
    assert judge["correlation"] is None


def test_agreement__of_numbers_and_of_labels(api: APIClient, project: Project) -> None:
    ids = [f"019aa000-0000-7000-8000-00000000001{place}" for place in range(3)]
    numbers = make_queue(project, request_ids=ids, kind="number", minimum=0, maximum=100, compared_score_name="quality")
    labels = make_queue(project, request_ids=ids, kind="category", labels=["bad", "good"], score_name="tone")
    for queue, answers in (
        (numbers, [{"score_value": value} for value in (10, 50, 90)]),
        (labels, [{"score_label": label} for label in ("bad", "good", "good")]),
    ):
        for item, answer in zip(queue.items.order_by("position"), answers, strict=True):
            api.post(f"/api/llm/reviews/{queue.pk}/items/{item.pk}/score", answer, format="json")
    for request_id, value, label in zip(ids, (20, 60, 80), ("bad", "good", "bad"), strict=True):
        make_score(project, request_id=request_id, score_name="quality", score_value=value, evaluator_type="llm_judge")
        make_score(
            project, request_id=request_id, score_name="tone", score_type="category", score_value=7, score_label=label
        )

    of_numbers = api.get(f"/api/llm/reviews/{numbers.pk}/agreement").json()["evaluators"]
    of_labels = api.get(f"/api/llm/reviews/{labels.pk}/agreement").json()["evaluators"]

    assert of_numbers[0]["correlation"]["value"] == pytest.approx(0.9820, abs=1e-3)
    assert of_numbers[0]["mean_difference"] == pytest.approx(10)
    assert of_numbers[0]["kappa"] is None
    assert (of_labels[0]["evaluator_type"], of_labels[0]["equal"]["value"]) == ("code", pytest.approx(2 / 3))
