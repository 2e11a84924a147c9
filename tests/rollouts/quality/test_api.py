"""Evaluators of a rollout over HTTP: making one, reading it, and its metrics."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from analytics.evaluators.services import NewVersion, add_version, change_evaluator
from analytics.models import OnlineEvaluation
from analytics.models.online_evaluations import TaskState
from core.models import AuditEntry
from gateway.evaluations.services import change_online_evaluation, delete_online_evaluation
from rollouts.comparison.quality import NOT_SAMPLED
from rollouts.models import Rollout
from tests.factories.evaluators import make_evaluator
from tests.rollouts.conftest import Api
from tests.rollouts.quality.conftest import BAD, GOOD, Judged, entry, figures_of
from tests.rollouts.quality.tasks import matched

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("totals")]


def problems(api: Api, *entries: Any) -> dict[str, Any]:
    response = api.create(quality=list(entries))
    assert response.status_code == 400, response.content
    found: dict[str, Any] = response.json()["error"]["details"]
    return found


def test_create__without_quality__none(api: Api) -> None:
    body = api.created()
    assert body["quality"] == []
    assert api.move(body["id"], "start").json()["quality"] == []


def test_create__with_an_evaluator__as_asked_for_and_then_as_at_the_start(api: Api, rule: OnlineEvaluation) -> None:
    asked = entry(rule, required=True, margin=0.05)
    body = api.created(quality=[asked])
    before = {
        **asked,
        "version": None,
        "title": None,
        "kind": None,
        "action": None,
        "label_share": None,
        "margin_scale": None,
        "calibration": None,
        "score_name": None,
        "worst": 0.0,
        "best": 1.0,
        "goal": False,
    }
    assert body["quality"] == [before]
    assert api.get(body["id"])["quality"] == [before]
    begun = {
        **before,
        "version": 1,
        "title": "says seven@1",
        "kind": "contains",
        "action": "roll_back",
        "margin_scale": 1.0,
        "calibration": "rule",
    }
    assert api.move(body["id"], "start").json()["quality"] == [begun]
    listed = api.client.get("/api/llm/prompts/rollouts").json()["results"]
    assert [one["quality"] for one in listed] == [[begun]]
    audited = AuditEntry.objects.get(operation="createRollout", object_kind="rollout")
    assert str(rule.evaluator_id) in str(audited.changes)


def test_create__bad_values__each_named_with_its_place(api: Api, rule: OnlineEvaluation) -> None:
    good = entry(rule)
    found = problems(
        api,
        good,
        {},
        {**good, "margin": 1},
        {**good, "version": 0, "action": "pause"},
        {**good, "label_share": 2, "weight": 3, "required": "yes"},
    )
    assert sorted(found) == [
        "quality.1.evaluator_id",
        "quality.2.margin",
        "quality.3.action",
        "quality.3.version",
        "quality.4.label_share",
        "quality.4.required",
        "quality.4.weight",
    ]
    assert found["quality.2.margin"] == ["Must be above 0 and below 1."]
    assert list(problems(api, *[good] * 6)) == ["quality"]
    assert list(problems(api, good, {"evaluator_id": str(uuid4())})) == ["quality.1.evaluator_id"]
    assert list(problems(api, "says seven")) == ["quality.0"]


def test_create__without_a_matched_sample__says_which_call_mends_it(api: Api) -> None:
    evaluator = make_evaluator(api.project)
    [problem] = problems(api, {"evaluator_id": str(evaluator.pk)})["quality.0.evaluator_id"]
    assert "`POST online-evaluations` and `matched`" in problem


def test_start__sample_gone__refused_and_named(api: Api, rule: OnlineEvaluation) -> None:
    rollout_id = api.created(quality=[entry(rule)])["id"]
    delete_online_evaluation(project_id=api.project.pk, evaluation_id=rule.pk, actor="test")
    response = api.move(rollout_id, "start")
    assert (response.status_code, list(response.json()["error"]["details"])) == (400, ["quality.0.evaluator_id"])
    assert api.get(rollout_id)["status"] == "pending"


def test_metrics__before_any_verdict__nothing_known(judged: Judged, rule: OnlineEvaluation) -> None:
    rollout = judged.rollout(entry(rule, required=True))
    found = judged.metrics(rollout)["quality"]
    assert (found["status"], found["required"], found["through"]) == ("inconclusive", ["says seven@1"], {})
    [one] = found["evaluators"]
    assert (one["pairs"], one["explanation"], one["is_sampled"]) == (0, "Nothing to compare yet.", True)
    assert one["tasks"]["target"]["due"] == 0


def test_metrics__without_evaluators__null(judged: Judged) -> None:
    assert judged.metrics(judged.rollout())["quality"] is None


def test_metrics__pending__null(judged: Judged, rule: OnlineEvaluation) -> None:
    body = judged.api.created(quality=[entry(rule)])
    assert judged.metrics(Rollout.objects.get(pk=body["id"]))["quality"] is None


def test_metrics__tasks__counted_by_arm_and_reason_beside_what_was_judged(
    judged: Judged, rule: OnlineEvaluation
) -> None:
    rollout = judged.rollout(entry(rule))
    judged.requests(rollout, 30)
    judged.scores(rollout, rule, range(30, 28, -1), [1.0, 1.0, None], [0.5, 1.0, 1.0])
    judged.scores(rollout, rule, range(3, 2, -1), [None], [], state=TaskState.DUE, reason="", ended_at=None)
    judged.look(rollout)
    found = judged.metrics(rollout)["quality"]
    [one] = found["evaluators"]
    assert one["tasks"] == {
        "target": {
            "due": 7,
            "done": 4,
            "missing": 2,
            "missing_by_reason": {"no_text": 2},
            "judged": 0,
            "judged_missing": 0,
            "labels_due": 0,
            "labelled": 0,
            "labels_awaited": 0,
        },
        "baseline": {
            "due": 6,
            "done": 6,
            "missing": 0,
            "missing_by_reason": {},
            "judged": 0,
            "judged_missing": 0,
            "labels_due": 0,
            "labelled": 0,
            "labels_awaited": 0,
        },
    }
    assert list(found["through"]) == ["scores"]
    assert not one["decides"]


def test_metrics__failing__the_evaluator_decides(judged: Judged, rule: OnlineEvaluation) -> None:
    rollout = judged.rollout(entry(rule))
    judged.worse(rollout, rule)
    judged.look(rollout)
    body = judged.metrics(rollout)
    [one] = body["quality"]["evaluators"]
    assert (body["rollout_status"], body["reason"], one["decides"]) == ("rolled_back", "quality_failing", True)
    assert (one["target"], one["baseline"], one["interval"]["confidence"]) == (0.0, 1.0, 0.95)
    assert one["evidence"] > body["quality"]["evidence_threshold"]
    assert not any(metric["decides"] for metric in body["metrics"].values())
    assert one["tasks"]["target"]["judged"] == 40


@pytest.mark.parametrize("change", ["rubric edited", "archived", "paused", "deleted"])
def test_evaluator__changed_in_the_middle__what_it_showed_stays_and_no_more_comes(
    judged: Judged, rule: OnlineEvaluation, change: str
) -> None:
    rollout = judged.rollout(entry(rule, required=True))
    judged.requests(rollout, 40)
    judged.scores(rollout, rule, range(40, 36, -1), GOOD, GOOD)
    judged.sampled_until(25)
    judged.look(rollout, ago=20)
    project_id, before = judged.api.project.pk, judged.metrics(rollout)["quality"]["evaluators"][0]
    assert (before["is_sampled"], before["pairs"]) == (True, 40)
    match change:
        case "rubric edited":
            edited = NewVersion({"value": "eight"})
            add_version(project_id=project_id, evaluator_id=rule.evaluator_id, new=edited, actor="test")
        case "archived":
            change_evaluator(project_id=project_id, evaluator_id=rule.evaluator_id, values={"state": "archived"})
        case "paused":
            values = {"state": "paused"}
            change_online_evaluation(project_id=project_id, evaluation_id=rule.pk, values=values, actor="test")
        case _:
            delete_online_evaluation(project_id=project_id, evaluation_id=rule.pk, actor="test")
    # What is scored by another version says nothing of this one.
    if change == "rubric edited":
        judged.scores(rollout, rule, range(15, 10, -1), BAD, GOOD)
    judged.sampled_until(0)
    judged.look(rollout)
    after = judged.metrics(rollout)["quality"]["evaluators"][0]
    assert (after["is_sampled"], after["explanation"]) == (False, before["explanation"] + NOT_SAMPLED)
    unchanged = ("title", "version", "pairs", "evidence", "safety", "status", "target", "baseline", "interval")
    assert {name: after[name] for name in unchanged} == {name: before[name] for name in unchanged}
    figures_of(rollout)


def test_evaluator__whose_rubric_was_edited__goes_on_with_a_sample_of_the_old_version(
    judged: Judged, rule: OnlineEvaluation
) -> None:
    rollout = judged.rollout(entry(rule))
    judged.requests(rollout, 40)
    edited = NewVersion({"value": "eight"})
    add_version(project_id=judged.api.project.pk, evaluator_id=rule.evaluator_id, new=edited, actor="test")
    again = matched(judged.api.project, rule.evaluator, version=1)
    judged.scores(rollout, again, range(30, 26, -1), BAD, GOOD)
    judged.look(rollout)
    assert rollout.status == "rolled_back"


def test_evaluator__removed_with_its_tasks__the_verdict_stays_and_replays(
    judged: Judged, rule: OnlineEvaluation
) -> None:
    rollout = judged.rollout(entry(rule))
    judged.requests(rollout, 40)
    judged.scores(rollout, rule, range(40, 36, -1), GOOD, GOOD)
    judged.look(rollout, ago=20)
    before = judged.metrics(rollout)["quality"]["evaluators"][0]
    rule.evaluator.delete()
    judged.look(rollout)
    after = judged.metrics(rollout)["quality"]["evaluators"][0]
    assert (after["pairs"], after["safety"], after["is_sampled"]) == (40, before["safety"], False)
    assert (after["tasks"]["target"]["due"], after["tasks"]["target"]["judged"]) == (0, 40)
    figures_of(rollout)


def test_evaluator__renamed_in_the_middle__judges_on_by_the_name_of_the_start_and_a_namesake_does_not(
    judged: Judged, rule: OnlineEvaluation
) -> None:
    rollout = judged.rollout(entry(rule))
    judged.requests(rollout, 40)
    judged.scores(rollout, rule, range(40, 39, -1), BAD, GOOD)
    judged.sampled_until(25)
    judged.look(rollout, ago=20)
    values = {"name": "other"}
    change_evaluator(project_id=judged.api.project.pk, evaluator_id=rule.evaluator_id, values=values)
    namesake = matched(judged.api.project, make_evaluator(judged.api.project, name="says seven"))
    judged.scores(rollout, namesake, range(18, 15, -1), GOOD, BAD)
    judged.scores(rollout, rule, range(15, 10, -1), BAD, GOOD)
    judged.sampled_until(0)
    judged.look(rollout)
    [one] = figures_of(rollout)["quality"]["evaluators"]
    assert (rollout.status, one["title"], one["pairs"]) == ("rolled_back", "says seven@1", 60)
