from __future__ import annotations

import pytest

from benchmarks import report
from benchmarks.report import Outcome
from benchmarks.scenarios import Measured


def measured(
    requests_per_second: float,
    cpu_microseconds: float,
    error_kinds: dict[str, int] | None = None,
    *,
    beside: dict[str, float] | None = None,
) -> Measured:
    """Of 2,000 requests sent, 1,000 finished in the window. `cpu_microseconds` is per finished request, `beside` per
    sent one."""
    result = {"requests": 1000, "sent": 2000, "words": 0, "requests_per_second": requests_per_second}
    seconds = {role: microseconds / 500 for role, microseconds in (beside or {}).items()}
    return Measured({**result, "error_kinds": error_kinds or {}}, cpu_microseconds / 1000, seconds, 80.0)


def test_outcome__several_rounds__takes_the_median() -> None:
    outcome = Outcome("a", measured={"throughput": [measured(100, 50), measured(900, 10), measured(110, 60)]})

    assert outcome.throughput == 110
    assert outcome.cpu_per_request is not None
    assert round(outcome.cpu_per_request) == 50


def test_whole_product__is_the_serving_process_and_each_other_one_by_the_requests_it_worked_for() -> None:
    one = measured(1, 150, beside={"shipper": 110, "engine": 90})

    assert one.whole_per_request == pytest.approx(350)


def test_whole_product__no_request_finished__has_no_figure() -> None:
    nothing = Measured({"requests": 0, "sent": 0}, 0.1, {"shipper": 0.1}, 80.0)

    assert nothing.whole_per_request is None
    assert nothing.beside_per_request() == {}


def test_markdown__whole_product__stands_beside_the_serving_process_and_is_explained_by_process() -> None:
    rounds = [measured(100, cost, beside={"shipper": 100, "redis": cost / 100}) for cost in (100, 200, 300)]
    outcomes = {
        "ours": Outcome("Ours", measured={"throughput": rounds}),
        "tensorzero": Outcome("TensorZero", measured={"throughput": [measured(100, 151)]}),
    }

    page = report.markdown(outcomes, "settings", for_page=True).splitlines()
    whole = report.markdown(outcomes, "settings").splitlines()

    assert page[0].count("|") == 7
    assert page[2] == "| Ours | 100 | 200 | 302 | - / - | - |"
    assert page[3] == "| TensorZero | 100 | 151 | 151 | - / - | - |"
    assert "- CPU µs per request of Ours: web worker 200, shipper 100, redis 2; all 302." in page
    assert dict(zip(whole[0].split(" | "), whole[2].split(" | "), strict=True))["whole product / TensorZero"] == "2.00"


def test_markdown__what_limits_cost__compares_each_round_with_itself() -> None:
    """The medians alone, 110 and 130, would give 1.18."""
    plain = [measured(1, 100), measured(1, 300), measured(1, 110)]
    limited = [measured(1, cost, beside={"redis": 10}) for cost in (130, 330, 110)]
    outcomes = {
        "ours": Outcome("Ours", measured={"throughput": plain}),
        "ours-limits": Outcome("Limits", measured={"throughput": limited}),
        "litellm": Outcome("LiteLLM", measured={"throughput": limited}),
    }

    lines = [line for line in report.markdown(outcomes, "settings").splitlines() if "times the CPU" in line]
    assert lines == [
        "- Limits: 1.10 times the CPU per request of Ours, the median over the rounds; "
        "1.00 to 1.30 in the middle half of them. Whole product: web worker 130, redis 10; all 140."
    ]


def test_failures__several_rounds__are_added_by_scenario_and_kind() -> None:
    outcome = Outcome("a", measured={"large": [measured(1, 1, {"status 500": 2}), measured(1, 1, {"status 500": 3})]})

    assert outcome.failures() == {"large: status 500": 5}
