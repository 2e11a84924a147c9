from __future__ import annotations

import math
from typing import Any

import pytest

from rollouts.comparison import wire as comparisons
from rollouts.comparison.tables import change, figure, metric_rows
from rollouts.evaluation import Policy
from tests.tables.cases import tabled


def metric(**values: Any) -> dict[str, Any]:
    return {
        "status": "inconclusive",
        "judged": True,
        "action": "roll_back",
        "target": 0.06,
        "baseline": 0.02,
        "difference": 0.04,
        "interval": {"low": 0.01, "high": None},
        "evidence": math.log(12.5),
        "evidence_threshold": math.log(200),
        "safety": 0.0,
        "safety_threshold": math.log(20),
        "user_evidence": None,
        "users_undecided": False,
        "explanation": "So it is.",
        **values,
    }


def verdict(reason: str, *, decision: str = "wait", **metrics: dict[str, Any]) -> dict[str, Any]:
    return {"reason": reason, "decision": decision, "metrics": metrics}


def judged_metrics(figures: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return comparisons.judged_metrics(figures, Policy())


@tabled
def test_metrics__each_reason__those_that_decide(figures: dict[str, Any], deciding: list[str]) -> None:
    assert [name for name, one in judged_metrics(figures).items() if one["decides"]] == deciding


def test_metrics__stored_in_another_order__shown_in_that_of_the_policy() -> None:
    stored = verdict("inconclusive", latency_p95=metric(), error_rate=metric(), unanswered=metric())
    assert list(judged_metrics(stored)) == ["unanswered", "error_rate", "latency_p95"]


def test_rows__metric__cells_for_people() -> None:
    figures = verdict(
        "inconclusive",
        unanswered=metric(),
        error_rate=metric(user_evidence=math.log(3), design_effect=4.0),
        latency_p95=metric(judged=False, target=None),
    )
    random, by_user, ignored = metric_rows(judged_metrics(figures))
    assert (random.name, random.label, random.mark, random.kind) == (
        "unanswered", "Unanswered", "not certain", "neutral",
    )  # fmt: skip
    assert (random.target, random.baseline, random.sentence, random.interval) == ("6 %", "2 %", "So it is.", None)
    assert random.numbers == [
        ("Difference", "+4.00 points (95 % interval: +1.00 points to ?)"),
        ("May fail from", "+0.50 points"),
        ("If it fails", "roll back"),
        ("E that it is worse", "12.5, decides from 200"),
        ("E that it is harmless", "1, decides from 20"),
    ]
    assert dict(by_user.numbers).items() >= {("E by users", "3"), ("Design effect", "4")}
    assert (ignored.mark, ignored.target) == ("not judged", "")
    assert not any(name.startswith("E ") for name, _ in ignored.numbers)


@tabled
def test_figure__unit_of_its_metric(name: str, value: float | None, shown: str) -> None:
    assert figure(name, value) == shown


def test_change__sign_and_points() -> None:
    shown = [change("latency_p95", -812.4), change("cost_per_request", 0.00012), change("error_rate", -0.0125)]
    assert shown == ["\N{MINUS SIGN}812 ms", "+$0.00012", "\N{MINUS SIGN}1.25 points"]
    assert change("error_rate", None) == ""


def test_rows__interval_known__plot_with_the_limit() -> None:
    figures = verdict("inconclusive", latency_average=metric(target=120.0, baseline=100.0, difference=20.0) | {
        "interval": {"low": 5.0, "high": 35.0}
    })  # fmt: skip
    [row] = metric_rows(judged_metrics(figures))
    assert row.interval is not None
    assert (row.interval.low, row.interval.value, row.interval.high) == (5.0, 20.0, 35.0)
    assert row.interval.limit == pytest.approx(10.0)


def test_rows__stopped__shown_only_and_in_the_order_of_people() -> None:
    figures = verdict(
        "inconclusive",
        latency_p95=metric(status="failing"),
        stopped=metric(judged=False, evidence_threshold=None),
        contract=metric(status="passing"),
    )
    rows = metric_rows(judged_metrics(figures))
    assert [(row.name, row.mark, row.kind) for row in rows] == [
        ("contract", "fine", "good"), ("stopped", "shown only", "neutral"), ("latency_p95", "worse", "bad"),
    ]  # fmt: skip
