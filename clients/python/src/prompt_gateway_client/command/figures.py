"""The figures of a report in words, for the files that people read."""

from __future__ import annotations

from typing import Any

NONE = "–"  # noqa: RUF001  # the dash of an empty cell


def number(value: float | None) -> str:
    return NONE if value is None else f"{value:.3f}"


def change(value: float | None) -> str:
    return NONE if value is None else f"{value:+.3f}"


def difference(evaluator: dict[str, Any]) -> str:
    """Returns the difference of the means with its interval."""
    if evaluator["difference"] is None:
        return NONE
    return f"{change(evaluator['difference'])} ({change(evaluator['low'])} to {change(evaluator['high'])})"


def in_words(evaluator: dict[str, Any], version: int | None, against: int | None) -> str:
    """Returns all figures of an evaluator, one a line."""
    lines = [
        f"version {version}: mean {number(evaluator['target_mean'])}",
        f"version {against}: mean {number(evaluator['baseline_mean'])}",
        f"difference: {difference(evaluator)}",
        f"pairs: {evaluator['pairs']}, of them {evaluator['wins']} won, {evaluator['ties']} tied,"
        f" {evaluator['losses']} lost",
        f"good answers: {number(evaluator['good_rate'])}"
        + (f", at least {number(evaluator['min_rate'])} demanded" if evaluator["min_rate"] is not None else ""),
    ]
    if evaluator["must_pass"]:
        lines.append(f"items that only version {against} passes: {evaluator['newly_failed_count']}")
    for missing in evaluator["unscored"]:
        lines.append(
            f"without a score ({missing['reason']}): {missing['target']} of version {version},"
            f" {missing['baseline']} of version {against}"
        )
    return "\n".join(lines)


def fails(evaluator: dict[str, Any]) -> bool:
    """Returns whether an evaluator keeps the version from passing."""
    return not evaluator["passes"] and bool(evaluator["required"] or evaluator["must_pass"])
