from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.rollouts.cells import CELLS, ERRORS_ONLY, RANDOM, STICKY_CELLS
from benchmarks.rollouts.outcomes import Results
from benchmarks.rollouts.peers import PEERS
from benchmarks.rollouts.runs import VERDICT, Run

METHODS = (VERDICT, *PEERS)
_NEVER = math.inf
HARMLESS = tuple(name for name in (*ERRORS_ONLY, *RANDOM, *STICKY_CELLS) if CELLS[name].plan.peers)
HARMFUL = (
    "errors 2 to 4 %",
    "errors 2 to 6 %",
    "errors 2 to 6 %, 3/min",
    "errors 2 to 6 %, all at once",
    "errors 2 to 6 %, sticky",
    "errors 2 to 6 % from stage 5",
)


@dataclass(frozen=True, slots=True)
class Power:
    caught: float
    median: float


def false_alarms(runs: Sequence[Run], method: str) -> float:
    return sum(method in run.alarms for run in runs) / len(runs)


def requests_needed(run: Run, method: str) -> float:
    """Returns the target's requests from the beginning of the harm to the alarm. An earlier alarm is false and counts
    as none."""
    alarm, before = run.alarms.get(method), run.harmed_after
    return _NEVER if alarm is None or before is None or alarm[1] < before else alarm[1] - before


def power(runs: Sequence[Run], method: str) -> Power:
    needed = sorted(requests_needed(run, method) for run in runs)
    return Power(sum(one < _NEVER for one in needed) / len(needed), needed[math.ceil(len(needed) / 2) - 1])


def table(results: Results) -> list[str]:
    head = " | ".join(("this verdict", *PEERS))
    lines = [f"| Harmless target: would have been rolled back | {head} |", "|---" * (1 + len(METHODS)) + "|"]
    lines += [
        f"| {name} | {' | '.join(_percent(false_alarms(results[name], method)) for method in METHODS)} |"
        for name in HARMLESS
        if name in results
    ]
    lines += ["", f"| Harmful target: caught, half of the runs by so many target requests | {head} |"]
    lines.append("|---" * (1 + len(METHODS)) + "|")
    lines += [
        f"| {name} | {' | '.join(_shown(power(results[name], method)) for method in METHODS)} |"
        for name in HARMFUL
        if name in results
    ]
    return lines


def _percent(share: float) -> str:
    return f"{share:.1%}"


def _shown(one: Power) -> str:
    return f"{one.caught:.0%}, {one.median:.0f}" if one.median < _NEVER else f"{one.caught:.0%}"
