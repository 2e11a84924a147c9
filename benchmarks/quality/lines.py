from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from benchmarks.binomial import limits
from benchmarks.quality.runs import Run
from benchmarks.quality.worlds import DAY, MissingBy, People, World
from rollouts.evaluation.quality.rules import QUALITY_ALPHA

_WHOLE = 0.05
_FEW_WORSE, _FEW_HARMLESS = 1000, 2000
"""The runs that the acceptance asks for, of targets that are worse and of others."""


def _rolled_back(run: Run) -> bool:
    return run.rolled_back


def _failed(run: Run) -> bool:
    return run.failed_pairs is not None


def _stopped(run: Run) -> bool:
    return run.rolled_back or run.held


def _completed(run: Run) -> bool:
    return run.completed_minute is not None


def _passed(run: Run) -> bool:
    return run.passed


def _found_within(pairs: int) -> Callable[[Run], bool]:
    return lambda run: run.failed_pairs is not None and run.failed_pairs <= pairs


def _unscored_within(tasks: int) -> Callable[[Run], bool]:
    return lambda run: run.unscored_tasks is not None and run.unscored_tasks <= tasks


def _found_by(runs: Sequence[Run]) -> str:
    return _shares("found", [run.failed_pairs for run in runs])


def _passed_by(runs: Sequence[Run]) -> str:
    return _shares("content", [run.passed_pairs for run in runs])


def _shares(word: str, pairs: Sequence[int | None]) -> str:
    needed = sorted(math.inf if one is None else one for one in pairs)
    half, most = (needed[math.ceil(share * len(needed)) - 1] for share in (0.5, 0.9))
    parts = [f"{name} {word} by {number:.0f}" for name, number in (("half", half), ("90 %", most)) if number < math.inf]
    return f"{', '.join(parts)} pairs" if parts else ""


@dataclass(frozen=True, slots=True)
class Line:
    """The share of runs in which something `happened` is at most, or at least, `bound`. Without a bound it is only
    shown."""

    number: str
    text: str
    worlds: tuple[World, ...]
    happened: Callable[[Run], bool]
    bound: float | None
    at_least: bool = False
    detail: Callable[[Sequence[Run]], str] = lambda runs: ""

    def outcome(self, results: Mapping[World, Sequence[Run]]) -> Outcome | None:
        if not all(results.get(world) for world in self.worlds):
            return None
        runs = [run for world in self.worlds for run in results[world]]
        return Outcome(self, sum(map(self.happened, runs)), len(runs), self.detail(runs))


@dataclass(frozen=True, slots=True)
class Outcome:
    line: Line
    count: int
    runs: int
    detail: str

    @property
    def limits(self) -> tuple[float, float]:
        return limits(self.count, self.runs)

    @property
    def broken(self) -> bool:
        bound, (low, high) = self.line.bound, self.limits
        return bound is not None and (high < bound if self.line.at_least else low > bound)

    @property
    def standing(self) -> str:
        bound, (low, high) = self.line.bound, self.limits
        if bound is None:
            return ""
        if self.broken:
            return "**broken**"
        if low >= bound if self.line.at_least else high <= bound or (self.count == 0 and bound == 0):
            return "kept"
        share = self.count / self.runs
        met = share >= bound if self.line.at_least else share <= bound
        return "kept, within chance" if met else "missed, within chance"


_THREE = World(evaluators=3)
_STICKY = replace(_THREE, users=300)
_MISSING = replace(_THREE, missing=0.4)
_BIASED = World(bias=0.1)
_AT_MARGIN = World(loss=0.1, watched=True)
_HIDDEN = World(loss=0.2, hidden=0.3, calibrated=400, watched=True)

_ALIKE: Mapping[str, tuple[str, World]] = {
    "60/min": ("1", replace(_THREE, metrics=True)),
    "3/min, 3 days": ("1", replace(_THREE, metrics=True, rate=3, minutes=3 * DAY)),
    "judge drifts by 20 points in a day": ("2", replace(_THREE, drift=0.2, minutes=DAY)),
    "judge away for 3 h": ("2", replace(_THREE, away=(200, 380))),
    "late scores": ("2", replace(_THREE, late=True)),
    "40 % missing, bad answers most": ("3", _MISSING),
    "40 % missing, long inputs most": ("3", replace(_MISSING, missing_by=MissingBy.LENGTH)),
    "40 % missing, all of a language": ("3", replace(_MISSING, missing_by=MissingBy.LANGUAGE)),
    "sticky, 300 users, ICC 0.2": ("4", _STICKY),
    "sticky, and a heavy user whom the judge dislikes": ("4", replace(_STICKY, heavy=0.06)),
    "sticky, and busy users get better answers by 30 points": ("4", replace(_STICKY, good=0.7, busy=0.3)),
}
"""Worlds in which the arms do not differ, with their lines."""


def _alike() -> list[Line]:
    lines = []
    for text, (number, world) in _ALIKE.items():
        if world.metrics:
            text += ", all metrics and 3 judges"
            lines.append(Line(number, f"A/A, {text}: rolled back", (world,), _rolled_back, _WHOLE))
        lines.append(Line(number, f"A/A, {text}: rolled back by scores", (world,), _failed, QUALITY_ALPHA))
    worlds = tuple(world for _, world in _ALIKE.values())
    lines.append(Line("1-4", "All of these together: rolled back by scores", worlds, _failed, QUALITY_ALPHA))
    return lines


def _labels() -> list[Line]:
    labelled, raw = replace(_BIASED, label_share=0.2), "Equal by labels, judge dislikes the target by 10 points"
    at_margin = replace(_AT_MARGIN, label_share=0.2)
    return [
        Line("5", f"{raw}, a fifth labelled: rolled back", (labelled,), _rolled_back, _WHOLE),
        Line("5", "The same by the raw judge: rolled back", (_BIASED,), _rolled_back, None, detail=_found_by),
        Line("6", "10 points worse, at the margin, a fifth labelled: passes", (at_margin,), _passed, _WHOLE),
        Line(
            "6",
            "The same, and the judge likes the target by 5 points: passes",
            (replace(at_margin, bias=-0.05),),
            _passed,
            _WHOLE,
        ),
        Line(
            "6",
            "10 points worse, no labels, judge calibrated by 100: passes",
            (replace(_AT_MARGIN, calibrated=100),),
            _passed,
            _WHOLE,
        ),
        Line(
            "6",
            "The same, taking the judge for right: passes",
            (replace(_AT_MARGIN, trusted=True),),
            _passed,
            None,
            detail=_passed_by,
        ),
    ]


def _careless() -> list[Line]:
    worse = World(loss=0.2, label_share=0.2, watched=True)
    likes, dislikes = replace(worse, bias=-0.15), World(bias=0.1, label_share=0.2)
    worlds = {
        "call all good": replace(worse, people=People.CALL_ALL_GOOD),
        "guess": replace(worse, people=People.GUESS),
        "repeat a judge who likes the target": replace(likes, people=People.REPEAT),
    }
    repeated = replace(dislikes, people=People.REPEAT)
    return [
        *(
            Line("11", f"20 points worse, people {text}: passes", (one,), _passed, _WHOLE)
            for text, one in worlds.items()
        ),
        Line("11", "Equal, people repeat a judge who dislikes it: rolled back", (repeated,), _rolled_back, _WHOLE),
    ]


def _missing() -> list[Line]:
    text = "20 points worse, 30 % of the target's scores missing, of bad answers"
    return [
        Line("7", f"{text}: passes", (_HIDDEN,), _passed, _WHOLE),
        Line("7", "The same: `unscored` holds by 300 tasks of each arm", (_HIDDEN,), _unscored_within(300), 0.95, True),
    ]


def _worse() -> list[Line]:
    lines = []
    for points, pairs in ((50, 100), (20, 450)):
        worse = World(loss=points / 100)
        calibrated = replace(worse, calibrated=100)
        lines += [
            Line("9", f"{points} points worse: found in {pairs} pairs", (worse,), _found_within(pairs), 0.9, True),
            Line("9", f"{points} points worse: found", (worse,), _failed, None, True, _found_by),
            Line("9", f"{points} points worse, judge calibrated by 100: completes", (calibrated,), _completed, 0.0),
        ]
    labelled = World(loss=0.2, label_share=0.2)
    for points in (50, 20):
        sticky = World(loss=points / 100, users=300)
        lines.append(
            Line("9", f"{points} points worse, sticky, 300 users: rolled back or held", (sticky,), _stopped, None, True)
        )
    lines.append(Line("9", "20 points worse, a fifth labelled: found", (labelled,), _failed, None, True, _found_by))
    return lines


def _harmless() -> list[Line]:
    three = replace(_THREE, minutes=DAY)
    worlds = {
        "rules": replace(three, rules=True),
        "judges calibrated by 400 labels": replace(three, calibrated=400),
        "judges calibrated by 100 labels": replace(three, calibrated=100),
        "judges, a fifth labelled": replace(three, label_share=0.2),
    }
    return [
        Line("10", f"Harmless, 3 {text}: completes within a day", (world,), _completed, 0.9, True, _passed_by)
        for text, world in worlds.items()
    ]


LINES: Sequence[Line] = (*_alike(), *_labels(), *_missing(), *_worse(), *_harmless(), *_careless())
WORLDS: Mapping[World, int] = {
    world: _FEW_WORSE if line.number == "9" else _FEW_HARMLESS for line in LINES for world in line.worlds
}
"""The worlds, with the runs that the acceptance asks for."""
