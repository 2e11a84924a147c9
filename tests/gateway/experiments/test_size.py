"""How many queries lists, details and pages of items make, whatever the number of experiments and answers."""

from __future__ import annotations

import random
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from core.models import Project
from gateway.experiments.report import conclude, count_winners, look, summarize, summary_of
from gateway.experiments.selectors import experiment_detail, get_experiment, item_entry, list_items
from gateway.experiments.services import end_experiment, pick_winner
from gateway.experiments.summary import verdict
from gateway.models import Experiment, ExperimentAnswer, ExperimentItem
from gateway.tables.experiment import LABELS, TIE, AnswerState, ExperimentState
from tests.factories.core import client_of
from tests.gateway.experiments.stored import Row, evaluator, make_experiment, pair

pytestmark = pytest.mark.django_db
PATH = "/api/llm/experiments"


def queries_of(call: Any) -> int:
    with CaptureQueriesContext(connection) as captured:
        call()
    return len(captured)


def answers_of(experiment: Experiment, api: Any) -> list[int]:
    """Returns how many queries the list, the detail and a page of items make."""
    found = []
    for path in (PATH, f"{PATH}/{experiment.pk}", f"{PATH}/{experiment.pk}/items"):
        with CaptureQueriesContext(connection) as captured:
            assert api.get(path).status_code == 200
        found.append(len(captured))
    return found


def test_api__more_experiments_and_items__makes_no_more_queries(project: Project) -> None:
    api = client_of(project)
    small = make_experiment(project, [pair(1.0, 1.0)] * 3)
    assert api.get(PATH).status_code == 200
    before = answers_of(small, api)
    for _ in range(5):
        big = make_experiment(project, [pair(1.0, 0.0)] * 50, repeats=2)

    assert answers_of(big, api) == before


def test_ended__summary__is_read_from_the_report(project: Project) -> None:
    experiment = make_experiment(project, [pair(1.0, 1.0)] * 30)
    running = get_experiment(project.pk, experiment.pk)
    assert queries_of(lambda: experiment_detail(running)) == 3
    end_experiment(experiment.pk, ExperimentState.COMPLETED)
    done = get_experiment(project.pk, experiment.pk)

    assert queries_of(lambda: experiment_detail(done)) == 0
    assert summary_of(done) == summarize(done)


def test_ended__another_winner_is_picked__is_counted(project: Project) -> None:
    experiment = make_experiment(project, [pair(1.0, 1.0)] * 3)
    end_experiment(experiment.pk, ExperimentState.COMPLETED)
    pick_winner(project_id=project.pk, experiment_id=experiment.pk, position=2, winner="B", actor="user:ann")

    assert [row["wins"] for row in summary_of(get_experiment(project.pk, experiment.pk))] == [0, 1]


def test_look__and_end__make_few_queries(project: Project) -> None:
    experiment = make_experiment(project, [pair([1.0, 0.0], [1.0, 1.0])] * 60, repeats=2)

    assert queries_of(lambda: look(experiment.pk)) <= 7
    Experiment.objects.filter(pk=experiment.pk).update(state=ExperimentState.COMPLETED)
    assert queries_of(lambda: conclude(experiment.pk)) <= 13


def test_items__of_any_number__make_four_queries(project: Project) -> None:
    experiment = make_experiment(project, [pair(1.0, 0.0)] * 40, [evaluator()])

    def read() -> None:
        for item in list_items(experiment):
            item_entry(item, sees_content=True)

    assert queries_of(read) == 3


@pytest.mark.parametrize("seed", range(5))
def test_winners__counted_by_the_database__are_those_of_each_item(project: Project, seed: int) -> None:
    rng = random.Random(seed)
    experiment = make_experiment(project, [Row([[], [], []])] * 40, [], repeats=2)
    for answer in ExperimentAnswer.objects.filter(item__experiment=experiment):
        answer.score = rng.choice([None, 50.0, 50.5, 51.0, 80.0, 80.0, 80.0, 80.0])
        answer.error_code = rng.choice(["", "", "", "", "timeout"])
        answer.state = rng.choices([AnswerState.DONE, AnswerState.PENDING], [40, 1])[0]
        answer.save()
    counted = dict.fromkeys([*LABELS, TIE, ""], 0)
    for item in ExperimentItem.objects.filter(experiment=experiment):
        item.winner = rng.choice(["", "", "", "", "A", TIE])
        item.save()
        counted[verdict(item)] += 1
    compared = sum(counted.values()) - counted.pop("")

    assert count_winners(experiment.pk) == {**counted, "compared": compared}
    assert compared
