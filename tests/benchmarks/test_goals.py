from __future__ import annotations

from benchmarks import goals
from benchmarks.gateway import TARGETS, parse
from benchmarks.goals import GOALS, Goal
from benchmarks.report import Outcome
from benchmarks.scenarios import MANY_STREAMS, Measured, scenarios


def measured(cpu_seconds: float = 0.1, **result: float) -> Measured:
    return Measured({"requests": 1000, "sent": 1000, "words": 0, "error_kinds": {}, **result}, cpu_seconds, {}, 80.0)


def goal(what: str) -> Goal:
    (found,) = (one for one in GOALS if one.what == what)
    return found


def outcome(scenario: str, *rounds: Measured) -> Outcome:
    return Outcome("a target", measured={scenario: list(rounds)})


def test_ratio__is_the_median_of_the_rounds_own_ratios() -> None:
    """The medians alone, 160 and 200 µs, would give 0.80."""
    outcomes = {
        "ours": outcome("throughput", measured(0.030), measured(0.160), measured(0.200)),
        "tensorzero": outcome("throughput", measured(0.100), measured(0.200), measured(0.800)),
    }

    row = goal("web worker by TensorZero's").row(outcomes)

    assert row == "| web worker by TensorZero's | 160 / 200 µs | 0.30 | 0.25 to 0.80 | ≤ 0.40 | yes |"


def test_added_latency__is_the_difference_to_the_mocks_own_of_the_same_round() -> None:
    outcomes = {
        "ours": outcome("one", *(measured(latency_p99=value) for value in (2.0, 2.5, 9.0))),
        "direct": outcome("one", *(measured(latency_p99=value) for value in (0.1, 0.2, 0.3))),
    }

    row = goal("one connection, added p99, ms").row(outcomes)

    assert row == "| one connection, added p99, ms | 2.50 / 0.20 ms | 2.30 | 1.90 to 8.70 | ≤ 1.50 | **no** |"


def test_delivered__is_a_lower_bound_on_a_share_of_the_words_that_are_due() -> None:
    due = MANY_STREAMS * 50
    delivered = goal(f"{MANY_STREAMS:,} streams at 50/s: delivered, %")

    every = {"ours": outcome("streams-many", *[measured(words_per_second=due * 1.01)] * 2)}
    some = {"ours": outcome("streams-many", *[measured(words_per_second=due * 0.99)] * 2)}

    assert delivered.row(every).endswith("| 100.00 | 100.00 to 100.00 | ≥ 99.90 | yes |")
    assert delivered.row(some).endswith("| 99.00 | 99.00 to 99.00 | ≥ 99.90 | **no** |")


def test_goal__target_that_was_not_measured__is_not_met() -> None:
    outcomes = {"ours": outcome("throughput", measured(), measured()), "tensorzero": Outcome("TensorZero")}

    assert goal("web worker by TensorZero's").row(outcomes).endswith("| - | - | ≤ 0.40 | not measured |")
    assert not goals.all_met(outcomes)


def test_goals__measure_only_what_they_need() -> None:
    options = parse(["--goals"])
    names = {scenario.name for scenario in scenarios(64)}

    assert {target for target, _ in goals.RUNS} == set(options.targets) <= set(TARGETS)
    assert {scenario for _, scenario in goals.RUNS} <= names
    assert options.measures("tensorzero", "throughput")
    assert not options.measures("tensorzero", "streams-many")
