from __future__ import annotations

import math
from collections.abc import Sequence

from benchmarks.rollouts.cells import AVERAGE, ERRORS, SLOW, errors_cell
from benchmarks.rollouts.comparison import METHODS, requests_needed
from benchmarks.rollouts.outcomes import Results
from benchmarks.rollouts.picture import Curve, Panel
from benchmarks.rollouts.runs import VERDICT, Run
from rollouts.evaluation import Metric

QUIET, STORM, HARM = errors_cell(0.02, 60), "all at once", "errors 2 to 6 %"
SHOWN = {
    "errors 2 to 4 %": ("errors 2 → 4 %", ERRORS),
    "errors 2 to 6 %": ("errors 2 → 6 %", ERRORS),
    "errors 2 to 50 %": ("errors 2 → 50 %", ERRORS),
    "latency +30 %": ("latency average +30 %", AVERAGE),
    "p95 +50 %": ("latency p95 +50 %", SLOW),
}
NEEDED = (QUIET, STORM, *SHOWN)
"""The cells that the picture is drawn from."""


def panels(results: Results) -> list[Panel]:
    return [
        _false("Harmless target, calm: false alarms", results[QUIET]),
        _false("Harmless target, drift, spells, outages, bursts: false alarms", results[STORM]),
        Panel(
            "Errors 2 → 6 %: caught after so many of its requests",
            "requests of the target",
            3000,
            1.0,
            [
                Curve(_name(method), [requests_needed(run, method) for run in results[HARM]], len(results[HARM]))
                for method in METHODS
            ],
            logarithmic=True,
        ),
        Panel(
            "This verdict, by harm",
            "requests of the target",
            3000,
            1.0,
            [_caught(label, results[cell], metric) for cell, (label, metric) in SHOWN.items()],
            logarithmic=True,
        ),
    ]


def _false(title: str, runs: Sequence[Run]) -> Panel:
    curves = [
        Curve(_name(method), [run.alarms[method][0] for run in runs if method in run.alarms], len(runs))
        for method in METHODS
    ]
    return Panel(title, "minutes since the start", 480, 1.0, curves, line=0.05)


def _name(method: str) -> str:
    return "this verdict" if method == VERDICT else method


def _caught(label: str, runs: Sequence[Run], metric: Metric) -> Curve:
    return Curve(label, [run.failed.get(metric, math.inf) for run in runs], len(runs))
