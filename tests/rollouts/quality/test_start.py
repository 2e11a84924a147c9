"""The evaluators of a rollout: which ones may judge it, and what it keeps of them at its start."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from analytics.evaluators.services import NewVersion, add_version, change_evaluator
from analytics.models import Evaluator
from core.models import Project
from gateway.evaluations.services import change_online_evaluation
from prompts.models import PromptConfig
from rollouts.errors import InvalidRolloutError
from rollouts.evaluation import Action
from rollouts.models import Rollout, RolloutQuality
from rollouts.quality.entries import QualityEntry, RolloutEvaluator, evaluators_of
from rollouts.services import complete_rollout, pause_rollout, start_rollout
from tests.factories.core import make_project
from tests.factories.evaluators import make_evaluator
from tests.factories.prompts import make_config
from tests.factories.rollouts import make_rollout
from tests.rollouts.quality.tasks import matched
from tests.tables.cases import tabled

pytestmark = pytest.mark.django_db


@pytest.fixture
def config(project: Project) -> PromptConfig:
    return make_config(project, versions=2)


@pytest.fixture
def evaluator(project: Project) -> Evaluator:
    return make_evaluator(project, name="says seven")


def start(rollout: Rollout) -> Rollout:
    row = start_rollout(project_id=rollout.project_id, rollout_id=rollout.pk, actor="test")
    return Rollout.objects.get(pk=row.pk)


def judged_by(config: PromptConfig, *entries: QualityEntry) -> RolloutEvaluator:
    [found] = evaluators_of(start(make_rollout(config, quality=entries)))
    return found


def refused(config: PromptConfig, *entries: QualityEntry) -> dict[str, Any]:
    with pytest.raises(InvalidRolloutError) as caught:
        make_rollout(config, quality=entries)
    assert not Rollout.objects.exists()
    return dict(caught.value.details or {})


def test_rule__at_the_start__rolls_back_and_shows_all_of_a_difference(
    project: Project, config: PromptConfig, evaluator: Evaluator
) -> None:
    matched(project, evaluator)
    found = judged_by(config, QualityEntry(evaluator.pk, required=True))
    version = evaluator.versions.get()
    assert found == RolloutEvaluator(
        evaluator_id=evaluator.pk,
        version_id=version.pk,
        version=1,
        title="says seven@1",
        kind="contains",
        action=Action.ROLL_BACK,
        margin=0.1,
        required=True,
        label_share=None,
        margin_scale=1.0,
        calibration="rule",
    )


def test_rubric_edited_and_evaluator_renamed__later__the_rollout_keeps_what_it_began_with(
    project: Project, config: PromptConfig, evaluator: Evaluator
) -> None:
    matched(project, evaluator)
    row = make_rollout(config, quality=[QualityEntry(evaluator.pk)])
    edited = NewVersion({"value": "eight"})
    add_version(project_id=project.pk, evaluator_id=evaluator.pk, new=edited, actor="test")
    assert evaluators_of(row) == ()
    row = start(row)
    [found] = evaluators_of(row)
    assert (found.version, found.title) == (2, "says seven@2")
    add_version(project_id=project.pk, evaluator_id=evaluator.pk, new=NewVersion({"value": "nine"}), actor="test")
    change_evaluator(project_id=project.pk, evaluator_id=evaluator.pk, values={"name": "other"})
    pause_rollout(project_id=project.pk, rollout_id=row.pk, actor="test")
    assert evaluators_of(start(row)) == (found,)


def test_completed_without_a_start__no_evaluators(project: Project, config: PromptConfig, evaluator: Evaluator) -> None:
    matched(project, evaluator)
    row = make_rollout(config, quality=[QualityEntry(evaluator.pk)])
    complete_rollout(project_id=project.pk, rollout_id=row.pk, actor="test")
    row.refresh_from_db()
    assert (evaluators_of(row), RolloutQuality.objects.count()) == ((), 0)


def test_entries__unknown_or_contradictory__named(project: Project, config: PromptConfig, evaluator: Evaluator) -> None:
    matched(project, evaluator)
    good = QualityEntry(evaluator.pk)
    assert list(refused(config, good, QualityEntry(uuid4()))) == ["quality.1.evaluator_id"]
    assert list(refused(config, QualityEntry(evaluator.pk, version=2))) == ["quality.0.version"]
    assert list(refused(config, good, QualityEntry(evaluator.pk, version=1))) == ["quality.1.evaluator_id"]
    ignored = QualityEntry(evaluator.pk, required=True, action=Action.IGNORE)
    assert list(refused(config, ignored)) == ["quality.0.required"]
    assert refused(config, QualityEntry(evaluator.pk, label_share=0.2)) == {
        "quality.0.label_share": [
            "The online evaluation of this evaluator has no label_share, and people label by that. Change it there"
            " with `PATCH online-evaluations/{evaluation_id}`, or leave it out here."
        ]
    }
    assert list(refused(config, QualityEntry(make_evaluator(make_project()).pk))) == ["quality.0.evaluator_id"]


@tabled
def test_sample__that_gives_the_rollout_no_pairs__refused_with_the_call_that_mends_it(
    project: Project, config: PromptConfig, evaluator: Evaluator, changes: dict[str, Any]
) -> None:
    row = matched(project, evaluator)
    change_online_evaluation(project_id=project.pk, evaluation_id=row.pk, values=changes, actor="test")
    [problem] = refused(config, QualityEntry(evaluator.pk))["quality.0.evaluator_id"]
    assert "`POST online-evaluations`" in problem
    assert "`PATCH online-evaluations/{evaluation_id}`" in problem


def test_sample__by_the_newest_version_or_of_this_config__taken(
    project: Project, config: PromptConfig, evaluator: Evaluator
) -> None:
    matched(project, evaluator, filter={"prompt_config_id": str(config.pk), "language": "de"})
    add_version(project_id=project.pk, evaluator_id=evaluator.pk, new=NewVersion({"value": "eight"}), actor="test")
    [problem] = refused(config, QualityEntry(evaluator.pk, version=1))["quality.0.evaluator_id"]
    assert "for this evaluator, version 1, and prompt config" in problem
    assert judged_by(config, QualityEntry(evaluator.pk, version=2)).version == 2


def test_sample__paused_before_the_start__the_start_is_refused(
    project: Project, config: PromptConfig, evaluator: Evaluator
) -> None:
    sample = matched(project, evaluator)
    row = make_rollout(config, quality=[QualityEntry(evaluator.pk)])
    change_online_evaluation(project_id=project.pk, evaluation_id=sample.pk, values={"state": "paused"}, actor="test")
    with pytest.raises(InvalidRolloutError, match=r"^quality\.0\.evaluator_id: No active online evaluation"):
        start(row)
    row.refresh_from_db()
    assert (row.status, RolloutQuality.objects.count()) == ("pending", 0)


def test_evaluator__archived__refused(project: Project, config: PromptConfig, evaluator: Evaluator) -> None:
    matched(project, evaluator)
    change_evaluator(project_id=project.pk, evaluator_id=evaluator.pk, values={"state": "archived"})
    assert list(refused(config, QualityEntry(evaluator.pk))) == ["quality.0.evaluator_id"]
