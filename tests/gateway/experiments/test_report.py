"""Reports and verdicts over scores that are in the database."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from core.models import Project
from gateway.experiments.report import look, report_of, summary_of
from gateway.experiments.services import end_experiment
from gateway.models import Experiment, ExperimentAnswer
from gateway.tables.experiment import ExperimentState
from tests.gateway.experiments.stored import Row, evaluator, make_experiment, pair

pytestmark = pytest.mark.django_db

BOTH_GOOD, WON, LOST = pair(1.0, 1.0), pair(1.0, 0.0), pair(0.0, 1.0)


def ended(experiment: Experiment, state: ExperimentState = ExperimentState.COMPLETED, **fields: Any) -> Any:
    """Ends the experiment and returns it, with its report."""
    assert end_experiment(experiment.pk, state, **fields)
    experiment.refresh_from_db()
    return experiment


def judged(experiment: Experiment) -> int:
    report = report_of(experiment)
    assert report is not None
    return report["items_judged"]


def only_target(experiment: Experiment) -> Any:
    report = report_of(experiment)
    assert report is not None
    [target] = report["targets"]
    return target


def test_look__twenty_further_items__writes_the_verdict_and_says_whether_to_stop(project: Project) -> None:
    experiment = make_experiment(project, [LOST] * 60)
    last = ExperimentAnswer.objects.filter(item__experiment=experiment, item__position__gte=45)
    last.update(state="pending")

    assert look(experiment.pk)
    experiment.refresh_from_db()
    assert judged(experiment) == 20
    assert (experiment.verdicts, experiment.verdict) == ({"B": "worse"}, "")
    assert look(experiment.pk), "what stood at the last look still stands"


def test_look__items_out_of_turn__wait_for_those_before_them(project: Project) -> None:
    experiment = make_experiment(project, [LOST] * 60)
    ExperimentAnswer.objects.filter(item__experiment=experiment, item__position=20).update(state="scoring")

    assert not look(experiment.pk)
    experiment.refresh_from_db()
    assert experiment.report is None


def test_look__nothing_decided__goes_on(project: Project) -> None:
    experiment = make_experiment(project, [BOTH_GOOD, WON, LOST, BOTH_GOOD] * 10)

    assert not look(experiment.pk)
    experiment.refresh_from_db()
    assert judged(experiment) == 40 and experiment.verdicts == {"B": "undecided"}


def test_look__one_of_two_targets_undecided__goes_on(project: Project) -> None:
    rows = [Row([[0.5], [0.0], [float(number % 2)]]) for number in range(40)]
    experiment = make_experiment(project, rows)

    assert not look(experiment.pk)
    experiment.refresh_from_db()
    assert experiment.verdicts == {"B": "worse", "C": "undecided"}


def test_look__ended_or_without_evaluators__does_nothing(project: Project) -> None:
    assert not look(make_experiment(project, [BOTH_GOOD] * 20, state=ExperimentState.CANCELLED).pk)
    assert not look(make_experiment(project, [Row([[], []])] * 20, []).pk)


def test_end__completed__has_figures_of_each_pair(project: Project) -> None:
    rows = [*[BOTH_GOOD] * 70, *[WON] * 5, *[LOST] * 15, *[pair(None, 1.0)] * 8, *[pair(0.0, None)] * 2]
    experiment = ended(make_experiment(project, rows))
    target = only_target(experiment)
    [found] = target["evaluators"]

    assert (found["wins"], found["ties"], found["losses"], found["pairs"]) == (5, 70, 15, 100)
    assert found["target_mean"] == pytest.approx(75 / 90) and found["baseline_mean"] == pytest.approx(85 / 90)
    assert found["difference"] == pytest.approx(-10 / 90)
    assert found["low"] < found["difference"] < found["high"]
    assert (found["target_missing"], found["baseline_missing"]) == (8, 2)
    assert found["unscored"] == [{"reason": "judge_failed", "target": 8, "baseline": 2}]
    assert found["good_rate"] == 0.75
    assert found["newly_failed_count"] == 23 and len(found["newly_failed"]) == 10
    assert [item["position"] for item in target["worst_items"]] == list(range(76, 86))
    assert target["worst_items"][0]["scores"] == {"good@1": {"target": 0.0, "baseline": 1.0}}
    assert experiment.verdict == target["verdict"] == experiment.verdicts["B"]


def test_end__target_fails_what_the_baseline_passed__worse_in_words(project: Project) -> None:
    target = only_target(ended(make_experiment(project, [LOST] * 30)))

    assert target["verdict"] == "worse"
    assert target["explanation"] == (
        "After 30 items, B is worse than A. By good@1 it scores 0.00 on average against 1.00 of A: B is better on 0 and"
        " worse on 30 items, alike on 0. Fewer than one in a hundred candidates that are no worse would ever look so"
        " bad."
    )


def test_end__all_alike__passed_in_words(project: Project) -> None:
    target = only_target(ended(make_experiment(project, [BOTH_GOOD] * 100)))

    assert target["verdict"] == "passed"
    assert target["explanation"].startswith("After 100 items, B passed. By good@1 it scores 1.00 on average against 1")
    assert "where 20 is needed." in target["explanation"]


@pytest.mark.parametrize(
    ("rows", "scoring", "words"),
    [
        ([], [evaluator()], "nothing to compare"),
        ([BOTH_GOOD] * 100, [evaluator(required=False)], "No evaluator is required"),
        ([pair(None, None, reason="answer_failed")] * 100, [evaluator()], "more than 20% missing"),
        ([pair(None, None)] * 100, [evaluator(required=False, must_pass=True)], "more than 20% missing"),
        ([*[BOTH_GOOD] * 99, LOST], [evaluator(must_pass=True)], "fails on 1 item that A passed (100)"),
        ([*[BOTH_GOOD] * 90, *[LOST] * 3], [evaluator(must_pass=True, min_rate=0.99)], "where 99.0% are asked for"),
        ([BOTH_GOOD, WON, LOST, BOTH_GOOD] * 10, [evaluator()], "more items may tell"),
    ],
)
def test_end__undecided__says_why(project: Project, rows: list[Row], scoring: list[Any], words: str) -> None:
    experiment = ended(make_experiment(project, rows, scoring))

    assert experiment.verdict == "undecided"
    assert words in only_target(experiment)["explanation"]


def test_end__missing_in_the_target_only__does_not_pass(project: Project) -> None:
    experiment = ended(make_experiment(project, [pair(None, 1.0), *[BOTH_GOOD] * 3] * 100))

    assert experiment.verdict == "undecided"


def test_end__all_failed_for_good__are_scored_as_the_worst(project: Project) -> None:
    rows = [pair(0.0, 0.0, answer={"error_code": "bad_request"})] * 40
    experiment: Any = ended(make_experiment(project, rows))

    assert only_target(experiment)["evaluators"][0]["target_mean"] == 0
    assert [row["failed"] for row in summary_of(experiment)] == [40, 40]


def test_end__one_candidate__has_means_and_no_verdict(project: Project) -> None:
    experiment: Any = ended(make_experiment(project, [Row([[0.5]]), Row([[1.0]]), Row([[None]])]))

    assert (experiment.verdict, experiment.verdicts) == ("", {})
    assert report_of(experiment) == {"items_judged": 3, "item_count": 3, "targets": []}
    [row] = summary_of(experiment)
    assert row["scores"] == [{"evaluator": "good@1", "mean": 0.75, "scored": 2, "unscored": 1}]


def test_end__without_evaluators__has_a_summary_and_no_report(project: Project) -> None:
    experiment = ended(make_experiment(project, [Row([[], []])] * 3, []))

    assert report_of(experiment) is None
    assert [row["answered"] for row in summary_of(experiment)] == [3, 3]


@pytest.mark.parametrize("cost", ["0.00001", "0.0000000003", "0.1234567891", "12.3400000001"])
def test_summary__costs_of_a_thousand_answers__add_up_to_the_last_digit(project: Project, cost: str) -> None:
    count = 1000
    experiment = ended(make_experiment(project, [Row([[], []], answer={"cost_usd": Decimal(cost)})] * count, []))

    for row in summary_of(experiment):
        assert Decimal(str(row["total_cost_usd"])) == count * Decimal(cost)
        assert row["mean_cost_usd"] == float(cost)


@pytest.mark.parametrize("state", [ExperimentState.CANCELLED, ExperimentState.FAILED])
def test_end__before_its_end__has_a_report_of_what_is_there_and_no_verdict(
    project: Project, state: ExperimentState
) -> None:
    rows = [*[LOST] * 33, pair(0.0, 1.0, state="running"), *[LOST] * 6]
    experiment = ended(make_experiment(project, rows), state)

    assert experiment.verdict == ""
    assert experiment.verdicts == {"B": "worse"}
    assert judged(experiment) == 33
    assert only_target(experiment)["explanation"].startswith("After 33 of 40 items, B is worse than A.")


def test_end__stopped_early__keeps_the_verdict_at_which_it_did(project: Project) -> None:
    rows = [*[LOST] * 27, *[pair(0.0, 1.0, state="pending")] * 13]
    experiment = make_experiment(project, rows)
    assert look(experiment.pk)
    ended(experiment, stopped_early=True)

    assert judged(experiment) == 20
    assert experiment.verdict == "worse"


def test_end__two_targets__the_verdict_is_the_worst(project: Project) -> None:
    experiment = ended(make_experiment(project, [Row([[1.0], [1.0], [0.0]])] * 100))

    assert experiment.verdicts == {"B": "passed", "C": "worse"}
    assert experiment.verdict == "worse"


def test_end__another_baseline__compares_with_it(project: Project) -> None:
    experiment = ended(make_experiment(project, [Row([[0.0], [1.0]])] * 30, baseline="B"))

    assert experiment.verdicts == {"A": "worse"}


def test_repeats__are_one_pair__without_a_score_where_any_lacks_one(project: Project) -> None:
    rows = [pair([1.0, 0.5], [1.0, 1.0]), pair([1.0, None], [0.0, 0.0])]
    [found] = only_target(ended(make_experiment(project, rows, repeats=2)))["evaluators"]

    assert (found["target_mean"], found["pairs"], found["target_missing"]) == (0.75, 2, 1)
    assert found["unscored"] == [{"reason": "judge_failed", "target": 1, "baseline": 0}]


def test_pairwise__scores_of_targets_alone__say_by_how_much_they_win(project: Project) -> None:
    rows = [Row([[], [value]]) for value in (1.0, 0.5, 0.0, None, 0.0)]
    target = only_target(ended(make_experiment(project, rows, [evaluator("better", kind="pairwise")])))
    [found] = target["evaluators"]

    assert (found["wins"], found["ties"], found["losses"]) == (1, 1, 2)
    assert found["difference"] == pytest.approx(-0.25)
    assert (found["target_missing"], found["unscored"]) == (1, [{"reason": "judge_failed", "target": 1, "baseline": 0}])
    assert [item["position"] for item in target["worst_items"]] == [3, 5]


def test_score_without_a_row__is_missing(project: Project) -> None:
    [found] = only_target(ended(make_experiment(project, [Row([[1.0], []])] * 2)))["evaluators"]

    assert found["unscored"] == [{"reason": "no_score", "target": 2, "baseline": 0}]


def test_tags__worse_in_one_language__is_named(project: Project) -> None:
    rows = [
        pair(0.0 if number % 3 == 0 else 1.0, 1.0, tags=["german" if number % 3 == 0 else "english"])
        for number in range(90)
    ]
    target = only_target(ended(make_experiment(project, rows)))

    assert target["worse_tags"] == [{"evaluator": "good@1", "tag": "german", "pairs": 30, "difference": -1.0}]


def test_evidence__of_a_thousand_losses__is_capped(project: Project) -> None:
    target = only_target(ended(make_experiment(project, [LOST] * 300)))

    assert target["e_worse"] == pytest.approx(1e9)
