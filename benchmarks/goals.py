from __future__ import annotations

import operator
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from benchmarks.report import Outcome, by_round
from benchmarks.scenarios import BURST, LARGE_BYTES, MANY_STREAMS, SMALL_BYTES, Measured


@dataclass(frozen=True, slots=True)
class Figure:
    target: str
    scenario: str
    value: Callable[[Measured], float | None]
    unit: str
    digits: int = 0

    def of_rounds(self, outcomes: dict[str, Outcome]) -> list[float | None]:
        found = outcomes.get(self.target)
        return found.of_rounds(self.scenario, self.value) if found else []

    def median(self, outcomes: dict[str, Outcome]) -> str:
        found = [one for one in self.of_rounds(outcomes) if one is not None]
        return f"{statistics.median(found):,.{self.digits}f}" if found else "-"


@dataclass(frozen=True, slots=True)
class Goal:
    """A bound on what `compare` makes of a figure and of the base's in the same round; without a base, on the figure
    itself. The median over the rounds decides."""

    what: str
    figure: Figure
    bound: float
    base: Figure | None = None
    compare: Callable[[float, float], float] = operator.truediv
    at_least: bool = False
    digits: int = 2

    def quartiles(self, outcomes: dict[str, Outcome]) -> list[float]:
        found = self.figure.of_rounds(outcomes)
        if self.base is None:
            return by_round(found, found, lambda mine, _: mine)
        return by_round(found, self.base.of_rounds(outcomes), self.compare)

    def is_met(self, measured: float) -> bool:
        return measured >= self.bound if self.at_least else measured <= self.bound

    def row(self, outcomes: dict[str, Outcome]) -> str:
        quartiles = self.quartiles(outcomes)
        cells = [
            self.what,
            " / ".join(one.median(outcomes) for one in self._figures()) + f" {self.figure.unit}",
            self._number(quartiles[1]) if quartiles else "-",
            f"{self._number(quartiles[0])} to {self._number(quartiles[2])}" if quartiles else "-",
            f"{'≥' if self.at_least else '≤'} {self._number(self.bound)}",
            ("yes" if self.is_met(quartiles[1]) else "**no**") if quartiles else "not measured",
        ]
        return f"| {' | '.join(cells)} |"

    def _figures(self) -> list[Figure]:
        return [self.figure, self.base] if self.base is not None else [self.figure]

    def _number(self, value: float) -> str:
        return f"{value:,.{self.digits}f}"


def _cpu(target: str, scenario: str = "throughput") -> Figure:
    return Figure(target, scenario, lambda one: one.cpu_per_request, "µs")


def _per_kilobyte(large: float, small: float) -> float:
    return (large - small) / ((LARGE_BYTES - SMALL_BYTES) / 1024)


def _whole(target: str) -> Figure:
    return Figure(target, "throughput", lambda one: one.whole_per_request, "µs")


def _chunk(target: str) -> Figure:
    return Figure(target, "streams-64", lambda one: one.cpu_per_word, "µs", 1)


def _latency(target: str, percentile: str) -> Figure:
    return Figure(target, "one", lambda one: one.result[f"latency_{percentile}"], "ms", 2)


def _burst(percentile: str) -> Figure:
    return Figure("ours", "burst", lambda one: one.result[f"latency_{percentile}"], "ms", 1)


def _native(protocol: str) -> Iterable[Goal]:
    name = f"ours-{protocol.lower()}-native"
    yield Goal(f"{protocol}, native, request by chat's", _cpu(name), 1.10, _cpu("ours"))
    yield Goal(f"{protocol}, native, chunk by chat's", _chunk(name), 1.10, _chunk("ours"))


_DELIVERED = Figure("ours", "streams-many", lambda one: one.delivered * 100, "%", 2)
_LATE = Figure("ours", "streams-many", lambda one: one.result["lateness_p99"], "ms", 1)

GOALS: Sequence[Goal] = (
    Goal("web worker by TensorZero's", _cpu("ours"), 0.40, _cpu("tensorzero")),
    Goal("all limits by none, full load", _cpu("ours-limits"), 1.12, _cpu("ours")),
    Goal("all limits by none, 300/s", _cpu("ours-limits", "moderate"), 1.15, _cpu("ours", "moderate")),
    Goal("whole product by TensorZero's, which stores nothing", _whole("ours"), 1.0, _whole("tensorzero")),
    Goal("a KB of a body beyond the first, µs", _cpu("ours", "large"), 0.60, _cpu("ours"), _per_kilobyte),
    Goal("streamed chunk, 64 streams, by nginx's", _chunk("ours"), 1.15, _chunk("floor")),
    Goal(f"{MANY_STREAMS:,} streams at 50/s: delivered, %", _DELIVERED, 99.9, at_least=True),
    Goal(f"{MANY_STREAMS:,} streams at 50/s: late p99, ms", _LATE, 15.0, digits=1),
    Goal("one connection, added p50, ms", _latency("ours", "p50"), 0.25, _latency("direct", "p50"), operator.sub),
    Goal("one connection, added p99, ms", _latency("ours", "p99"), 1.5, _latency("direct", "p99"), operator.sub),
    Goal(f"{BURST} connections that open together beside traffic: p99 by p50", _burst("p99"), 2.0, _burst("p50")),
    *_native("Messages"),
    *_native("Responses"),
)

# The runs that the goals need, and the mock's own streams, which show that load and mock keep their pace.
RUNS = {(one.target, one.scenario) for goal in GOALS for one in (goal.figure, goal.base) if one is not None} | {
    ("direct", "streams-many")
}
TARGETS = list(dict.fromkeys(target for target, _ in sorted(RUNS)))


def markdown(outcomes: dict[str, Outcome]) -> str:
    lines = ["| What | Medians | Measured | Middle half of the rounds | Goal | Met |", "|---" * 6 + "|"]
    return "\n".join([*lines, *(goal.row(outcomes) for goal in GOALS)])


def all_met(outcomes: dict[str, Outcome]) -> bool:
    measured = [(goal, goal.quartiles(outcomes)) for goal in GOALS]
    return all(quartiles and goal.is_met(quartiles[1]) for goal, quartiles in measured)
