"""The calibration of evaluators: its figures by hand, its states, and labels of review queues over HTTP."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from rest_framework.test import APIClient

from analytics.evaluators.calibration.calibrate import family_of, shared_families
from analytics.evaluators.calibration.states import (
    LABELS_LAST,
    Facts,
    Missing,
    State,
    standing_of,
    state_of,
)
from analytics.evaluators.calibration.statistics import (
    Confusion,
    Group,
    confusion_by_group,
    differential_bias,
    flip_evidence,
)
from analytics.models import Evaluator
from core.models import Project
from tests.factories.analytics import make_entry, store
from tests.factories.core import make_project
from tests.factories.evaluators import make_evaluator
from tests.factories.reviews import make_queue, queue_body
from tests.factories.scores import make_score
from tests.tables.cases import tabled

NOW = datetime(2026, 11, 27, tzinfo=UTC)
PROMPT = UUID(int=7)
FIRST, SECOND = Group(PROMPT, 2, "2"), Group(PROMPT, 10, "10")
# Each version has 60 answers: 40 good, of which 38 are called good, and 20 bad, of which 18 are called bad.
ALIKE = Confusion(true_good=38, false_good=2, true_bad=18, false_bad=2)


def facts(**values: Any) -> Facts:
    difference = differential_bias({FIRST: ALIKE, SECOND: ALIKE})
    assert difference is not None
    whole = Confusion(true_good=76, false_good=4, true_bad=36, false_bad=4)
    return Facts(**{"confusion": whole, "differences": [difference], "labelled_at": NOW, "models": ["m"], **values})


def test_confusion__known_counts__shares_and_bias() -> None:
    found = Confusion(true_good=81, false_good=2, true_bad=8, false_bad=9)

    assert found.sensitivity is not None and found.specificity is not None and found.bias is not None
    assert (found.sensitivity.value, found.specificity.value) == pytest.approx((0.9, 0.8))
    assert (found.sensitivity.low, found.sensitivity.high) == pytest.approx((0.8208, 0.9462), abs=1e-3)
    assert found.bias.value == pytest.approx(-0.07)
    assert found.bias.low is not None and found.bias.high is not None
    assert found.bias.low < -0.07 < found.bias.high < 0
    assert Confusion(0, 0, 0, 0).bias is None and Confusion(3, 0, 0, 0).specificity is None


def test_informedness__known_counts__is_sensitivity_and_specificity_less_1() -> None:
    """The lower limit is as far below as both shares' lower limits are together, by squares."""
    found = Confusion(true_good=81, false_good=2, true_bad=8, false_bad=9)

    assert found.informedness is not None and found.sensitivity is not None and found.specificity is not None
    assert found.informedness.value == pytest.approx(0.7)
    assert (
        found.informedness.low is not None and found.sensitivity.low is not None and found.specificity.low is not None
    )
    below = math.hypot(0.9 - found.sensitivity.low, 0.8 - found.specificity.low)
    assert found.informedness.low == pytest.approx(0.7 - below)
    assert Confusion(3, 0, 0, 0).informedness is None


def test_difference__of_two_versions__is_later_less_earlier_within_one_prompt() -> None:
    lenient = Confusion(true_good=30, false_good=10, true_bad=10, false_bad=0)
    found = differential_bias({SECOND: lenient, FIRST: ALIKE, Group(UUID(int=9), 1, "1"): lenient})

    assert found is not None and (found.first, found.second, found.answers) == (FIRST, SECOND, 50)
    assert found.bias.value == pytest.approx(0.2)
    assert differential_bias({FIRST: ALIKE}) is None and confusion_by_group([]) == {}


def test_flips__one_way__are_evidence_and_both_ways_none() -> None:
    assert flip_evidence(to_good=0, to_bad=0) == pytest.approx(1)
    assert flip_evidence(to_good=0, to_bad=8) == pytest.approx(2**8 / 9)
    assert flip_evidence(to_good=10, to_bad=10) < 1
    # Its mean is 1 under chance: all outcomes of six flips, each with its probability.
    ways = (1, 6, 15, 20, 15, 6, 1)
    assert sum(n / 64 * flip_evidence(to_good=k, to_bad=6 - k) for k, n in enumerate(ways)) == pytest.approx(1)


@pytest.mark.parametrize(
    ("values", "state", "missing"),
    [
        ({}, State.CALIBRATED, []),
        ({"labelled_at": NOW - LABELS_LAST - timedelta(seconds=1)}, State.STALE, [Missing.RECENT_LABELS]),
        ({"models": ["m", "n"]}, State.STALE, [Missing.JUDGE_MODEL]),
        ({"drift": 20.0}, State.DRIFTED, [Missing.STEADY_VERDICTS]),
        ({"differences": []}, State.UNCALIBRATED, [Missing.GROUPS, Missing.DIFFERENTIAL_BIAS]),
        ({"confusion": Confusion(38, 2, 18, 2)}, State.UNCALIBRATED, [Missing.LABELS]),
        ({"confusion": Confusion(60, 20, 20, 20)}, State.UNCALIBRATED, [Missing.KAPPA]),
    ],
)
def test_state__what_is_missing__is_named(values: dict[str, Any], state: State, missing: list[Missing]) -> None:
    assert state_of(facts(**values), NOW) == (state, missing)


def test_state__judge_that_prefers_one_version__is_uncalibrated() -> None:
    lenient = Confusion(true_good=38, false_good=12, true_bad=10, false_bad=0)
    difference = differential_bias({FIRST: ALIKE, SECOND: lenient})

    assert state_of(facts(differences=[difference]), NOW) == (State.UNCALIBRATED, [Missing.DIFFERENTIAL_BIAS])


def test_standing__calibrated__shows_at_least_the_lower_limit_of_a_difference_until_it_is_stale() -> None:
    known = facts()
    shown = known.confusion.informedness
    assert shown is not None and shown.low is not None and 0 < shown.low < shown.value

    assert standing_of(known, NOW).margin_scale == pytest.approx(shown.low)
    later = standing_of(known, NOW + LABELS_LAST + timedelta(seconds=1))
    assert (later.state, later.margin_scale) == (State.STALE, None)
    drifted = standing_of(facts(drift=20.0), NOW)
    assert (drifted.state, drifted.margin_scale) == (State.DRIFTED, None)
    assert standing_of(facts(confusion=Confusion(0, 0, 0, 0)), NOW).margin_scale is None


@tabled
def test_family__of_a_model__is_who_made_it(model: str, family: str) -> None:
    assert family_of(model) == family


def test_families__of_judge_and_answers__are_shared_if_both_are_known() -> None:
    assert shared_families(["gpt-4o"], ["claude-sonnet-4-5", "o3-mini"]) == ["openai"]
    assert shared_families(["gpt-4o", "our-own"], ["claude-sonnet-4-5", "our-own"]) == []


def label(api: APIClient, queue_id: Any, *values: float) -> None:
    items = api.get(f"/api/llm/reviews/{queue_id}/items").json()["results"]
    for item, value in zip(items, values, strict=True):
        path = f"/api/llm/reviews/{queue_id}/items/{item['id']}/score"
        assert api.post(path, {"score_value": value}, format="json").status_code == 200


def calibration(api: APIClient, evaluator: Evaluator, expected: int = 200, **query: Any) -> Any:
    answer = api.get(f"/api/llm/evaluators/{evaluator.pk}/calibration", query)
    assert answer.status_code == expected, answer.content
    return answer.json()


@pytest.mark.django_db
@pytest.mark.usefixtures("clickhouse")
def test_calibration__of_labels_and_scores__confusion_by_version_and_flips(
    api: APIClient, project: Project, spool: Path
) -> None:
    entries = [
        make_entry(
            project_id=str(project.pk), prompt_config_id=str(PROMPT), prompt_version=1 + place % 2, model="gpt-4o"
        )
        for place in range(4)
    ]
    ids = [entry.record.request_id for entry in entries]
    store(spool, *entries)
    judge = make_evaluator(project, name="polite")
    queue = make_queue(project, request_ids=ids, kind="number", minimum=1, maximum=5, evaluator=judge)
    label(api, queue.pk, 5, 4, 1, 5)
    label(api, make_queue(project, request_ids=ids[:1]).pk, 0)
    own = {"score_name": "polite@1", "evaluator_type": "llm_judge", "judge_model": "gpt-4.1-mini"}
    make_score(project, request_id=ids[0], score_value=0.0, **own)
    for request_id, value in zip(ids[:3], (0.9, 0.2, 0.1), strict=True):
        make_score(project, request_id=request_id, score_value=value, **own)
    make_score(project, request_id=ids[3], score_value=0.1, **{**own, "score_name": "polite@2"})

    body = calibration(api, judge)

    assert (body["state"], body["labelled"], body["compared"]) == ("uncalibrated", 4, 3)
    assert body["missing"] == ["labels", "groups", "kappa", "differential_bias"]
    assert body["confusion"] == {"true_good": 1, "false_good": 0, "true_bad": 1, "false_bad": 1}
    assert body["sensitivity"]["value"] == pytest.approx(0.5) and body["specificity"]["value"] == 1
    assert [(one["prompt_version"], one["answers"]) for one in body["by_version"]] == [(1, 2), (2, 1)]
    assert body["between_versions"]["bias"]["value"] == pytest.approx(-1)
    assert body["flips"] == {"judged_again": 1, "to_good": 1, "to_bad": 0, "evidence": pytest.approx(1)}
    assert (body["margin_scale"], body["shared_model_families"]) == (None, ["openai"])
    assert body["informedness"]["value"] == pytest.approx(0.5)
    assert body["judge_models"] == ["gpt-4.1-mini"] and body["valid_until"] is not None
    calibration(api, judge, 404, version=2)
    calibration(api, judge, 400, version=0)


def rename(api: APIClient, evaluator: Evaluator, name: str) -> None:
    answer = api.patch(f"/api/llm/evaluators/{evaluator.pk}", {"name": name}, format="json")
    assert answer.status_code == 200, answer.content


@pytest.mark.django_db
@pytest.mark.usefixtures("clickhouse")
def test_calibration__evaluator_renamed__keeps_its_scores_and_who_takes_over_the_name_gets_none(
    api: APIClient, project: Project
) -> None:
    judge = make_evaluator(project, name="polite")
    request_ids = [str(uuid4()), str(uuid4()), str(uuid4())]
    label(api, make_queue(project, request_ids=request_ids, evaluator=judge).pk, 1, 1, 1)
    posted = {"score_name": "polite@1", "evaluator_type": "llm_judge", "score_value": 1.0}
    own = {**posted, "evaluator_version_id": judge.versions.get().pk, "judge_model": "gpt-4.1-mini"}
    make_score(project, request_id=request_ids[0], **own)
    # What clients post has the name alone, and may be changed by its id.
    make_score(project, request_id=request_ids[1], score_id="ours", **posted)

    rename(api, judge, "courteous")
    namesake = make_evaluator(project, name="polite")
    label(api, make_queue(project, request_ids=request_ids, evaluator=namesake).pk, 1, 1, 1)

    assert calibration(api, namesake)["compared"] == 0
    found = calibration(api, judge)
    assert (found["score_name"], found["compared"], found["judge_models"]) == ("courteous@1", 2, ["gpt-4.1-mini"])
    make_score(project, request_id=request_ids[1], score_id="ours", **{**posted, "score_value": 0.0})
    make_score(project, request_id=request_ids[2], **posted)
    assert calibration(api, judge)["confusion"]["false_bad"] == 1
    assert calibration(api, namesake)["compared"] == 1
    rename(api, namesake, "other")
    rename(api, judge, "polite")
    assert (calibration(api, judge)["compared"], calibration(api, namesake)["compared"]) == (2, 1)


@pytest.mark.django_db
def test_calibration__nothing_labelled__is_empty_and_not_of_other_projects(api: APIClient, project: Project) -> None:
    body = calibration(api, make_evaluator(project))

    assert (body["labelled"], body["kappa"], body["between_arms"]) == (0, None, None)
    calibration(api, make_evaluator(make_project()), 404)


@pytest.mark.django_db
def test_queue__of_an_evaluator__must_be_of_the_project_and_no_category(api: APIClient, project: Project) -> None:
    foreign = make_evaluator(make_project())
    for body, field in (
        ({"evaluator_id": str(foreign.pk)}, "evaluator_id"),
        ({"evaluator_id": str(uuid4())}, "evaluator_id"),
        ({"evaluator_id": str(foreign.pk), "kind": "category", "labels": ["a", "b"]}, "kind"),
    ):
        answer = api.post("/api/llm/reviews", queue_body(**body), format="json")
        assert answer.status_code == 400 and answer.json()["error"]["message"].startswith(field), answer.content
    queue = make_queue(project, evaluator=make_evaluator(project))
    assert api.get(f"/api/llm/reviews/{queue.pk}").json()["evaluator_id"] == str(queue.evaluator_id)
