"""The table of the benchmark has medians and ratios, and names everything that is left out."""

from __future__ import annotations

from pathlib import Path

from benchmarks import report
from benchmarks.report import Outcome
from benchmarks.scenarios import Measured


def measured(
    requests_per_second: float, cpu_microseconds: float, error_kinds: dict[str, int] | None = None
) -> Measured:
    result = {"requests": 1000, "words": 0, "requests_per_second": requests_per_second}
    return Measured({**result, "error_kinds": error_kinds or {}}, cpu_microseconds / 1000, 0.05, 80.0)


def test_outcome__several_rounds__takes_the_median() -> None:
    outcome = Outcome("a", measured={"throughput": [measured(100, 50), measured(900, 10), measured(110, 60)]})

    assert outcome.throughput == 110
    assert outcome.cpu_per_request is not None
    assert round(outcome.cpu_per_request) == 50


def test_markdown__what_limits_cost__compares_each_round_with_itself() -> None:
    """The medians alone, 110 and 130, would give 1.18."""
    plain = [measured(1, 100), measured(1, 300), measured(1, 110)]
    limited = [measured(1, 130), measured(1, 330), measured(1, 110)]
    outcomes = {
        "ours": Outcome("Ours", measured={"throughput": plain}),
        "ours-limits": Outcome("Limits", measured={"throughput": limited}),
        "litellm": Outcome("LiteLLM", measured={"throughput": limited}),
    }

    lines = [line for line in report.markdown(outcomes, "settings").splitlines() if "times the CPU" in line]
    assert lines == [
        "- Limits: 1.10 times the CPU per request of Ours, the median over the rounds; "
        "1.00 to 1.30 in the middle half of them. Processes beside: 50 µs against 50."
    ]


def test_markdown__peer_that_cannot_run__is_in_the_table_with_the_reason() -> None:
    outcomes = {"ours": Outcome("Ours"), "litellm": Outcome("LiteLLM", problem="pip failed")}

    assert "| LiteLLM | not measured: pip failed |" in report.markdown(outcomes, "settings")


def test_failures__several_rounds__are_added_by_scenario_and_kind() -> None:
    outcome = Outcome("a", measured={"large": [measured(1, 1, {"status 500": 2}), measured(1, 1, {"status 500": 3})]})

    assert outcome.failures() == {"large: status 500": 5}


def test_write__page_with_markers__replaces_only_what_is_between(tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    page.write_text("# Title\n\nBefore.\n")

    report.write(page, "first \\1")
    report.write(page, "second")

    assert page.read_text().startswith("# Title\n\nBefore.\n")
    assert "first" not in page.read_text()
    assert page.read_text().count("second") == 1
