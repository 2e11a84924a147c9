from __future__ import annotations

import re
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from analytics.evaluators.services import NewVersion, create_evaluator
from analytics.models import Dataset, Evaluator
from core.models import Project
from core.roles import Role
from gateway.experiments.candidates import NewCandidate, resolved, stored_form
from gateway.experiments.evaluators import NewEvaluator
from gateway.experiments.evaluators import resolved as evaluators_of
from gateway.experiments.evaluators import stored_form as stored_evaluators
from gateway.models import Experiment, ExperimentAnswer, ExperimentItem, ExperimentScore
from gateway.tables.experiment import AnswerState, ExperimentState
from prompts.models import PromptConfig
from tests.console.pages import text_of
from tests.console.prompts.conftest import shown
from tests.factories.core import make_staff
from tests.factories.datasets import make_dataset
from tests.factories.prompts import make_config, make_version

pytestmark = pytest.mark.django_db
LIST, NEW = "/admin/experiments/", "/admin/experiments/new/"


@pytest.fixture
def ann(client: Client, project: Project) -> Client:
    client.force_login(make_staff(Role.EDITOR, project, name="ann"))
    return client


@pytest.fixture
def prompt(project: Project) -> PromptConfig:
    config = make_config(project, "support")
    make_version(config, "Be kind.")
    make_version(config, "Be quick.")
    config.refresh_from_db()
    return config


@pytest.fixture
def dataset(project: Project) -> Dataset:
    return make_dataset(project, items=3, name="Hard cases")


@pytest.fixture
def evaluator(project: Project) -> Evaluator:
    return made_evaluator(project, "polite")


def made_evaluator(project: Project, name: str) -> Evaluator:
    new = NewVersion({"value": "please"}, 0.5)
    return create_evaluator(project_id=project.pk, name=name, kind="contains", first=new, actor="user:ann")


def report_of(title: str, **values: Any) -> dict[str, Any]:
    one = {
        "title": title, "required": True, "must_pass": False, "min_rate": None, "passes": True, "target_mean": 0.9,
        "baseline_mean": 0.8, "difference": 0.1, "low": -0.02, "high": 0.22, "wins": 5, "ties": 14, "losses": 1,
        "pairs": 19, "target_missing": 1, "baseline_missing": 0, "e_worse": 0.4, "e_not_worse": 31.0,
        "good_rate": 0.9, "newly_failed": [2], "newly_failed_count": 1,
        "unscored": [{"reason": "answer_failed", "target": 1, "baseline": 0}],
    }  # fmt: skip
    target = {
        "label": "B", "title": "support version 2", "verdict": "passed", "explanation": "B is not worse than A.",
        "e_worse": 0.4, "evaluators": [one],
        "worst_items": [
            {"position": 2, "difference": -0.5, "scores": {title: {"target": 0.25, "baseline": 0.75}}},
            {"position": 9, "difference": -0.1, "scores": {title: {"target": None, "baseline": 0.1}}},
        ],
        "worse_tags": [{"evaluator": title, "tag": "french", "pairs": 6, "difference": -0.3}],
    }  # fmt: skip
    return {"items_judged": 20, "item_count": 20, "targets": [{**target, **values}]}


def make_experiment(prompt: PromptConfig, dataset: Dataset, evaluator: Evaluator, **values: Any) -> Experiment:
    project = prompt.project
    versions = [prompt.versions.get(number=number) for number in (1, 2)]
    candidates = resolved(project.pk, [NewCandidate(version_id=version.pk) for version in versions])
    chosen = evaluators_of(project.pk, [NewEvaluator(evaluator.pk, must_pass=True, min_rate=0.9)])
    fields: dict[str, Any] = {
        "state": ExperimentState.COMPLETED, "verdict": "passed", "verdicts": {"B": "passed"},
        "report": report_of(chosen[0].title), **values,
    }  # fmt: skip
    row = Experiment.objects.create(
        project=project, name="Kind or quick", candidates=stored_form(candidates), baseline="A", item_limit=400,
        evaluators=stored_evaluators(chosen), dataset_id=dataset.pk, dataset_name=dataset.name,
        dataset_version=dataset.version, **fields,
    )  # fmt: skip
    for position, source in enumerate(dataset.items.order_by("position"), start=1):
        item = ExperimentItem.objects.create(
            experiment=row,
            position=position,
            dataset_item_id=source.item_id,
            tags=["french"],
            preview=f"Ask {position}",
        )
        for index, label in enumerate("AB"):
            answer = ExperimentAnswer.objects.create(
                item=item, candidate=index, state=AnswerState.DONE, answer={"content": f"{label}<{position}>"}
            )
            ExperimentScore.objects.create(answer=answer, evaluator=0, value=0.25, detail="too short")
    return row


def test_form__address_of_a_set__versions_and_evaluator_are_filled_in(
    ann: Client, project: Project, prompt: PromptConfig, dataset: Dataset, evaluator: Evaluator
) -> None:
    ids = [str(prompt.versions.get(number=number).pk) for number in (1, 2)]
    spec = f"{evaluator.pk}@1:must-pass:min-rate=0.9"

    text = shown(ann, NEW, project, dataset=str(dataset.pk), version=ids, evaluator=spec)

    assert f'value="{dataset.pk}" selected' in text
    assert all(f'value="{one}" selected' in text for one in ids)
    assert re.search(rf'name="evaluator-{evaluator.pk}-use"[^>]* checked', text)
    assert f'name="evaluator-{evaluator.pk}-min_rate" value="90"' in text
    assert "<strong>3 items</strong>" in text and "6 answers" in text


def test_form__sent__experiment_over_the_set_with_its_evaluators_and_limits(
    ann: Client, project: Project, prompt: PromptConfig, dataset: Dataset, evaluator: Evaluator
) -> None:
    prefix, versions = f"evaluator-{evaluator.pk}", {row.number: str(row.pk) for row in prompt.versions.all()}
    fields = {
        "dataset": str(dataset.pk), "a": versions[1], "b": versions[2], "c": versions[2], "c_temperature": "1",
        "order": "newest", "repeats": "2", "baseline": "A", "margin": "0.05", "reuse": "on", "user_id": "not used",
        f"{prefix}-use": "on", f"{prefix}-required": "on", f"{prefix}-must_pass": "on", f"{prefix}-min_rate": "90",
    }  # fmt: skip

    answer = ann.post(f"{NEW}?project={project.pk}", {**fields, "action": "start"})

    row = Experiment.objects.get()
    assert answer.headers["Location"].startswith(f"{LIST}{row.pk}/")
    assert (row.dataset_id, row.dataset_version, row.item_limit) == (dataset.pk, dataset.version, 400)
    assert (row.repeats, row.baseline, row.margin, row.reuse) == (2, "A", 0.05, True)
    assert [candidate["label"] for candidate in row.candidates] == ["A", "B", "C"]
    assert [(one["evaluator_id"], one["min_rate"]) for one in row.evaluators] == [(str(evaluator.pk), 0.9)]


def test_form__faults__said_at_their_fields(
    ann: Client, project: Project, prompt: PromptConfig, dataset: Dataset, evaluator: Evaluator
) -> None:
    prefix = f"evaluator-{evaluator.pk}"
    fields = {"dataset": str(dataset.pk), "order": "newest", "b_temperature": "1", "action": "start"}

    def sent(**more: str) -> str:
        return text_of(ann.post(f"{NEW}?project={project.pk}", {**fields, **more}))

    assert error_at(sent(dataset_version="99"), "dataset_version")
    assert error_at(sent(margin="2"), "margin")
    assert error_at(sent(c="served"), "c")
    assert error_at(sent(baseline="D", **{f"{prefix}-use": "on"}), "baseline")
    text = sent(**{f"{prefix}-use": "on", f"{prefix}-version": "7"})
    assert "The evaluator has no version 7." in text.split(f'name="{prefix}-version"')[1].split("</td>")[0]
    assert not Experiment.objects.exists()


def error_at(text: str, name: str) -> bool:
    return "errorlist" in text.split(f'name="{name}"')[1].split('<div class="field">')[0]


def test_form__nothing_there_yet__says_the_first_steps(ann: Client, project: Project) -> None:
    text = shown(ann, NEW, project)

    assert "No data set yet" in text and "No evaluator yet" in text
    assert f"/admin/evaluators/new/?project={project.pk}" in text


def test_experiment__passed__verdict_with_its_evidence_and_the_way_to_a_gate(
    ann: Client, project: Project, prompt: PromptConfig, dataset: Dataset, evaluator: Evaluator
) -> None:
    row = make_experiment(prompt, dataset, evaluator)

    text = shown(ann, f"{LIST}{row.pk}/", project)

    assert "B is not worse than A." in text and "20 of 20 items judged" in text
    assert "+0.100" in text and "\N{MINUS SIGN}0.020 to +0.220" in text and "5, 14, 1" in text
    assert "the answer failed: target 1, baseline 0" in text and "1 newly failed: item 2" in text
    assert "french by polite@1" in text
    assert "A&lt;2&gt;" in text and "too short" in text
    gate = re.search(r'href="(/admin/rollouts/new/[^"]*gate=experiment[^"]*)"', text)
    assert gate is not None
    versions = {version.number: str(version.pk) for version in prompt.versions.all()}
    for part in (f"baseline={versions[1]}", f"target={versions[2]}", f"gate_dataset={dataset.pk}"):
        assert part in gate[1]
    assert f"experiment_id={row.pk}&amp;positions=2%2C9" in text


@pytest.mark.parametrize("values", [{"verdict": "worse"}, {"verdict": "undecided"}])
def test_experiment__not_passed__opens_no_gate(
    ann: Client, project: Project, prompt: PromptConfig, dataset: Dataset, evaluator: Evaluator, values: dict[str, str]
) -> None:
    row = make_experiment(prompt, dataset, evaluator, report=report_of("polite@1", **values), **values)

    assert "Make it the gate" not in shown(ann, f"{LIST}{row.pk}/", project)


def test_experiment__run_again__form_of_the_same(
    ann: Client, project: Project, prompt: PromptConfig, dataset: Dataset, evaluator: Evaluator
) -> None:
    row = make_experiment(prompt, dataset, evaluator)
    again = re.search(r'href="([^"]*)">Run again', shown(ann, f"{LIST}{row.pk}/", project))
    assert again is not None

    text = text_of(ann.get(again[1].replace("&amp;", "&")))

    assert f'value="{dataset.pk}" selected' in text
    assert f'name="evaluator-{evaluator.pk}-min_rate" value="90"' in text


def test_experiment__items_gone__said_here_and_with_set_and_evaluator(
    ann: Client, project: Project, prompt: PromptConfig, dataset: Dataset, evaluator: Evaluator
) -> None:
    row = make_experiment(prompt, dataset, evaluator, erased_items=1, expired_items=2)
    ExperimentItem.objects.filter(experiment=row, position=1).update(dataset_item_id=None, preview="")

    text = shown(ann, f"{LIST}{row.pk}/", project)
    assert "1 erased, 2 past retention" in text and "The item is gone" in text
    for page in (f"/admin/datasets/{project.pk}/{dataset.pk}/", f"/admin/evaluators/{evaluator.pk}/"):
        used = shown(ann, page, project)
        assert "Kind or quick" in used and "1 erased, 2 past retention" in used


def test_uses__another_evaluator_and_set__not_listed(
    ann: Client, project: Project, prompt: PromptConfig, dataset: Dataset, evaluator: Evaluator
) -> None:
    make_experiment(prompt, dataset, evaluator)
    other, another = make_dataset(project, name="Other"), made_evaluator(project, "other")

    for page in (f"/admin/datasets/{project.pk}/{other.pk}/", f"/admin/evaluators/{another.pk}/"):
        used = shown(ann, page, project)
        assert "No experiment used it yet." in used and "Kind or quick" not in used


def test_list__filters__by_set_state_and_verdict(
    ann: Client, project: Project, prompt: PromptConfig, dataset: Dataset, evaluator: Evaluator
) -> None:
    make_experiment(prompt, dataset, evaluator)

    for query in ({"dataset_id": str(dataset.pk)}, {"state": "completed"}, {"verdict": "passed"}):
        assert "Kind or quick" in shown(ann, LIST, project, **query)
    for query in ({"dataset_id": str(uuid4())}, {"dataset_id": "x"}, {"state": "failed"}, {"verdict": "worse"}):
        assert "No experiment fits these filters." in shown(ann, LIST, project, **query)


def test_experiment__reader_without_content__sees_figures_and_no_texts(
    client: Client, project: Project, prompt: PromptConfig, dataset: Dataset, evaluator: Evaluator
) -> None:
    row = make_experiment(prompt, dataset, evaluator)
    client.force_login(make_staff(Role.READER_WITHOUT_CONTENT, project))

    text = shown(client, f"{LIST}{row.pk}/", project)

    assert "B is not worse than A." in text and "+0.100" in text
    assert "A&lt;2&gt;" not in text and "Ask 2" not in text and "too short" not in text
    assert "To a data set" not in text and "Make it the gate" not in text
