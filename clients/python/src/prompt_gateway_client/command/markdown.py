"""A run as Markdown, for a comment on a pull request."""

from __future__ import annotations

import re
from typing import Any

from prompt_gateway_client.command.figures import NONE, difference, fails, number
from prompt_gateway_client.command.outcome import Outcome

_MARKUP = re.compile(r"([\\`*_\[\]<>|#@~])")


def markdown(outcome: Outcome) -> str:
    """Returns the verdict, a table of the evaluators, and the items that are worth a look."""
    lines = [f"### Experiment: {_plain(outcome.title)}", "", _verdict(outcome), ""]
    target = outcome.target
    if target is not None and outcome.verdict is not None:
        lines += [*_table(outcome, target), "", *_newly_failed(target), *_worst(target), *_tags(target)]
    if outcome.experiment is not None:
        lines += [_last_line(outcome), ""]
    return "\n".join(lines)


def _verdict(outcome: Outcome) -> str:
    if outcome.is_unchanged:
        return "**unchanged**: it would be compared with itself."
    if outcome.error:
        return f"**not run** ({_plain(outcome.error['code'])}): {_plain(outcome.error['message'])}"
    explanation = (outcome.target or {}).get("explanation")
    return f"**{outcome.verdict}**" + (f": {_plain(explanation)}" if explanation else "")


def _table(outcome: Outcome, target: dict[str, Any]) -> list[str]:
    versions = f"Version {outcome.version} | Version {outcome.against}"
    return [
        f"| Evaluator | {versions} | Difference | Won, tied, lost | Passes |",
        "|---|---:|---:|---:|---:|---|",
        *(_row(evaluator) for evaluator in target["evaluators"]),
    ]


def _row(evaluator: dict[str, Any]) -> str:
    counts = f"{evaluator['wins']}, {evaluator['ties']}, {evaluator['losses']}"
    passes = "**no**" if fails(evaluator) else "yes" if evaluator["passes"] else NONE
    means = f"{number(evaluator['target_mean'])} | {number(evaluator['baseline_mean'])}"
    return f"| {_plain(evaluator['title'])} | {means} | {difference(evaluator)} | {counts} | {passes} |"


def _newly_failed(target: dict[str, Any]) -> list[str]:
    lines = []
    for evaluator in target["evaluators"]:
        if evaluator["must_pass"] and evaluator["newly_failed_count"]:
            first = ", ".join(map(str, evaluator["newly_failed"]))
            more = evaluator["newly_failed_count"] - len(evaluator["newly_failed"])
            rest = f" and {more} more" if more > 0 else ""
            lines += [f"Newly failed by {_plain(evaluator['title'])}: items {first}{rest}.", ""]
    return lines


def _worst(target: dict[str, Any]) -> list[str]:
    found = [item for item in target["worst_items"] if item["difference"] < 0]
    if not found:
        return []
    shown = ", ".join(f"{item['position']} ({item['difference']:+.3f})" for item in found)
    return [f"Worst items: {shown}.", ""]


def _tags(target: dict[str, Any]) -> list[str]:
    return [
        f"Worse at the tag {_plain(one['tag'])} by {_plain(one['evaluator'])}:"
        f" {one['difference']:+.3f} in {one['pairs']} pairs.\n"
        for one in target["worse_tags"]
    ]


def _last_line(outcome: Outcome) -> str:
    dataset, report = outcome.field("dataset"), outcome.field("report")
    parts = []
    if report:
        parts.append(f"{report['items_judged']} of {report['item_count']} items")
    if dataset:
        parts.append(f"data set {_plain(dataset['name'])}, version {dataset['version']}")
    if outcome.field("stopped_early"):
        parts.append("stopped early")
    if outcome.field("spent_usd") is not None:
        parts.append(f"${float(outcome.field('spent_usd')):.4f}")
    return f"{', '.join(parts)}. [Experiment]({outcome.url})"


def _plain(text: object) -> str:
    """Returns a text without its effect as Markdown, on one line."""
    return _MARKUP.sub(r"\\\1", " ".join(str(text).split()))
