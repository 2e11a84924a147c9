from __future__ import annotations

import operator
import os
import platform
import re
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.scenarios import BURST, MANY_STREAMS, Measured

_BEGIN, _END = "<!-- benchmark: begin -->", "<!-- benchmark: end -->"
_SERVING, _WHOLE = "CPU µs/request, serving process", "CPU µs/request, whole product"
_COLUMNS = [
    "Gateway",
    "req/s",
    _SERVING,
    _WHOLE,
    "CPU / floor's",
    "whole product / TensorZero",
    "req/s / LiteLLM",
    "req/s / Portkey",
    "req/s / TensorZero",
    "60 KB / 1 KB CPU",
    "added p50 / p99 ms",
    "one connection: added p50 / p99 ms",
    f"{BURST} more connections at once: p50 / p99 ms",
    "of it first requests: p50 / p99 ms",
    "added TTFT p50 / p99 ms, 16 streams",
    "64 streams: CPU µs/chunk",
    "added TTFT p50 / p99 ms, 64 streams",
    f"{MANY_STREAMS:,} streams at 50/s: delivered",
    "late p99 ms",
    "RSS MB",
    "failed",
]
# The columns of the table in docs/performance.md; the table in benchmarks/results has all of them.
_PAGE_COLUMNS = [
    "Gateway",
    "req/s",
    _SERVING,
    _WHOLE,
    "added p50 / p99 ms",
    "64 streams: CPU µs/chunk",
]


@dataclass(slots=True)
class Outcome:
    label: str
    version: str = "-"
    problem: str = ""
    measured: dict[str, list[Measured]] = field(default_factory=dict)

    def median(self, scenario: str, value: Callable[[Measured], float | None]) -> float | None:
        found = [one for one in self.of_rounds(scenario, value) if one is not None]
        return statistics.median(found) if found else None

    def of_rounds(self, scenario: str, value: Callable[[Measured], float | None]) -> list[float | None]:
        return [value(one) for one in self.measured.get(scenario, [])]

    def result(self, scenario: str, field_name: str) -> float | None:
        def read(one: Measured) -> float | None:
            value: float | None = one.result[field_name]
            return value

        return self.median(scenario, read)

    @property
    def throughput(self) -> float | None:
        return self.result("throughput", "requests_per_second") or None

    @property
    def cpu_per_request(self) -> float | None:
        return self.median("throughput", lambda one: one.cpu_per_request)

    @property
    def whole_per_request(self) -> float | None:
        return self.median("throughput", lambda one: one.whole_per_request)

    def beside_per_request(self) -> dict[str, float]:
        rounds = [one.beside_per_request() for one in self.measured.get("throughput", [])]
        roles = list(dict.fromkeys(role for one in rounds for role in one))
        return {role: statistics.median([one.get(role, 0.0) for one in rounds]) for role in roles}

    def failures(self) -> dict[str, int]:
        total: dict[str, int] = {}
        for name, rounds in self.measured.items():
            for one in rounds:
                for kind, count in one.result["error_kinds"].items():
                    total[f"{name}: {kind}"] = total.get(f"{name}: {kind}", 0) + count
        return total


def markdown(outcomes: dict[str, Outcome], settings: str, *, for_page: bool = False) -> str:
    rows = [_row(name, one, outcomes) for name, one in outcomes.items() if name != "ours-2"]
    columns = _PAGE_COLUMNS if for_page else _COLUMNS
    places = [_COLUMNS.index(column) for column in columns]
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    lines += [f"| {' | '.join(row[place] for place in places)} |" for row in rows]
    lines += ["", *_remarks(outcomes), "", f"{settings} {machine()}"]
    return "\n".join(lines)


def write(path: Path, report: str) -> None:
    text = path.read_text() if path.exists() else "# Performance\n"
    block = f"{_BEGIN}\n{report}\n{_END}"
    pattern = re.compile(f"{re.escape(_BEGIN)}.*?{re.escape(_END)}", re.DOTALL)
    # The replacement is a function, because a report may hold backslashes that a replacement string would interpret.
    text = pattern.sub(lambda _: block, text) if pattern.search(text) else f"{text.rstrip()}\n\n{block}\n"
    path.write_text(text)


def _row(name: str, one: Outcome, outcomes: dict[str, Outcome]) -> list[str]:
    if not one.measured:
        return [one.label, f"not measured: {one.problem}", *[""] * (len(_COLUMNS) - 2)]
    direct = outcomes.get("direct")
    return [
        one.label,
        _number(one.throughput, 0),
        _number(one.cpu_per_request, 0),
        _number(one.whole_per_request, 0),
        _times(one.cpu_per_request, _of(outcomes, "floor", "cpu_per_request")),
        _times(one.whole_per_request, _of(outcomes, "tensorzero", "whole_per_request"), 2),
        *(_times(one.throughput, _of(outcomes, peer, "throughput")) for peer in ("litellm", "portkey", "tensorzero")),
        _times(one.median("large", lambda m: m.cpu_per_request), one.cpu_per_request, 2),
        "-" if name == "direct" else _added(one, direct, "moderate", "latency"),
        "-" if name == "direct" else _added(one, direct, "one", "latency"),
        *(f"{_figure(one, what, 'p50')} / {_figure(one, what, 'p99')}" for what in ("latency", "first")),
        "-" if name == "direct" else _added(one, direct, "streams-16", "first_word"),
        _number(one.median("streams-64", lambda m: m.cpu_per_word), 0),
        "-" if name == "direct" else _added(one, direct, "streams-64", "first_word"),
        _percent(one.median("streams-many", lambda m: m.delivered)),
        _number(one.result("streams-many", "lateness_p99"), 1),
        _number(one.median("throughput", lambda m: m.resident_megabytes or None), 0),
        str(sum(one.failures().values())),
    ]


def _remarks(outcomes: dict[str, Outcome]) -> Iterable[str]:
    ours, twice = outcomes.get("ours"), outcomes.get("ours-2")
    if ours and ours.measured:
        yield (
            "- Prompt Gateway runs with authentication, cost and records on; its serving process is the web worker. "
            "The whole product is all that it runs, until every request is stored and the store is at rest. Of the "
            "peers, which keep no records, every process counts as serving."
        )
        yield f"- CPU µs per request of {ours.label}: {_by_process(ours)}."
    if ours and twice and ours.measured and twice.measured:
        yield (
            f"- Two workers: {_number(twice.throughput, 0)} req/s, "
            f"{_times(twice.throughput, ours.throughput, 2)} times one; "
            f"CPU per request {_number(twice.cpu_per_request, 0)} µs against {_number(ours.cpu_per_request, 0)} µs. "
            f"On {os.cpu_count()} cores the two workers share them with load, mock and stores, so CPU per request is "
            "the figure that tells whether workers hinder each other."
        )
    if ours:
        yield from _beside_ours(ours, outcomes)
    yield from problems(outcomes)
    yield versions(outcomes)


def versions(outcomes: dict[str, Outcome]) -> str:
    return "- Versions: " + "; ".join(f"{one.label} {one.version}" for one in outcomes.values() if one.version != "-")


def problems(outcomes: dict[str, Outcome]) -> Iterable[str]:
    for one in outcomes.values():
        if one.problem and one.measured:
            yield f"- {one.label}: {one.problem}"
        for kind, count in list(one.failures().items())[:6]:
            yield f"- {one.label}: {count} failed in {kind}."


def _beside_ours(ours: Outcome, outcomes: dict[str, Outcome]) -> Iterable[str]:
    """Compares each round with itself: a slow machine slows both halves of a round, and would shift two medians
    differently."""
    for name, one in outcomes.items():
        if name == "ours" or not name.startswith("ours"):
            continue
        if times := _times_by_round(one, ours, "throughput", lambda measured: measured.cpu_per_request):
            yield (
                f"- {one.label}: {times[1]:.2f} times the CPU per request of {ours.label}, the median over the rounds; "
                f"{times[0]:.2f} to {times[2]:.2f} in the middle half of them. Whole product: {_by_process(one)}."
            )
        if times := _times_by_round(one, ours, "streams-64", lambda measured: measured.cpu_per_word):
            yield (
                f"- {one.label}: {times[1]:.2f} times the CPU per chunk of {ours.label}; {times[0]:.2f} to "
                f"{times[2]:.2f} in the middle half of the rounds."
            )


def _times_by_round(
    one: Outcome, base: Outcome, scenario: str, value: Callable[[Measured], float | None]
) -> list[float]:
    return by_round(one.of_rounds(scenario, value), base.of_rounds(scenario, value), operator.truediv)


def by_round(
    figures: Sequence[float | None], base: Sequence[float | None], compare: Callable[[float, float], float]
) -> list[float]:
    """Returns the quartiles of `compare` over figure and base of the same round; empty if rounds are missing, or fewer
    than two."""
    if len(figures) != len(base):
        return []
    compared = [
        compare(mine, other)
        for mine, other in zip(figures, base, strict=True)
        if mine is not None and other is not None
    ]
    return statistics.quantiles(compared) if len(compared) > 1 else []


def _by_process(one: Outcome) -> str:
    costs = {"web worker": one.cpu_per_request, **one.beside_per_request()}
    parts = ", ".join(f"{role} {_number(cost, 0)}" for role, cost in costs.items())
    return f"{parts}; all {_number(one.whole_per_request, 0)}"


def _of(outcomes: dict[str, Outcome], name: str, attribute: str) -> float | None:
    value: float | None = getattr(outcomes[name], attribute) if name in outcomes else None
    return value


def _added(one: Outcome, direct: Outcome | None, scenario: str, what: str) -> str:
    def difference(percentile: str) -> str:
        mine = one.result(scenario, f"{what}_{percentile}")
        bare = direct.result(scenario, f"{what}_{percentile}") if direct else None
        return "-" if mine is None or bare is None else f"{mine - bare:,.2f}"

    return f"{difference('p50')} / {difference('p99')}"


def _figure(one: Outcome, what: str, percentile: str) -> str:
    return _number(one.result("burst", f"{what}_{percentile}"), 1)


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"


def _times(value: float | None, base: float | None, digits: int = 1) -> str:
    return "-" if not value or not base else f"{value / base:,.{digits}f}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share * 100:.1f} %"


def machine() -> str:
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    return (
        f"{os.cpu_count()} cores of {model}, Linux {platform.release()}, Python {platform.python_version()}, "
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC."
    )
