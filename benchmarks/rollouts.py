"""`python -m benchmarks.rollouts`: simulated rollouts against what the verdict promises. See benchmarks/README.md."""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from tqdm import tqdm

from benchmarks import report
from benchmarks.rollout_picture import Curve, Panel, svg
from benchmarks.rollout_promises import AVERAGE, CELLS, ERRORS, PROMISES, REMARKS, SLOW, Outcome, Results
from benchmarks.rollout_runs import Run, simulate
from benchmarks.targets.base import ROOT
from rollouts.evaluation import Metric

DOCS = ROOT / "docs"
_CHUNK = 10
_QUICK_SCALE = 0.03


@dataclass(frozen=True, slots=True)
class Options:
    scale: float
    processes: int
    seed: int
    write_docs: bool


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some runs of a cell: as much as one process does at a time."""

    cell: str
    first: int
    count: int
    seed: int


def run_chunk(chunk: Chunk) -> tuple[str, list[Run]]:
    cell = CELLS[chunk.cell]
    numbers = range(chunk.first, chunk.first + chunk.count)
    return chunk.cell, [simulate(cell.world, cell.plan, f"{chunk.seed}:{chunk.cell}:{number}") for number in numbers]


def run_all(options: Options) -> Results:
    chunks = _chunks(options)
    results: dict[str, list[Run]] = {name: [] for name in CELLS}
    total = sum(chunk.count for chunk in chunks)
    with tqdm(total=total, desc="simulating", unit="rollout") as progress:
        for name, runs in _each(chunks, options.processes):
            results[name] += runs
            progress.update(len(runs))
    return results


def _chunks(options: Options) -> list[Chunk]:
    chunks = []
    for name, cell in CELLS.items():
        runs = max(2, round(cell.runs * options.scale))
        chunks += [Chunk(name, first, min(_CHUNK, runs - first), options.seed) for first in range(0, runs, _CHUNK)]
    return chunks


def _each(chunks: Sequence[Chunk], processes: int) -> Iterator[tuple[str, list[Run]]]:
    if processes == 1:
        yield from map(run_chunk, chunks)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(run_chunk, chunks)


def markdown(results: Results, options: Options) -> str:
    lines = ["| Promise | Bound | Measured | 95 % limits | Runs | | Besides |", "|---" * 7 + "|"]
    lines += [_row(promise.outcome(results)) for promise in PROMISES]
    lines.append("")
    for remark in REMARKS:
        outcome = remark.outcome(results)
        lines.append(f"- {remark.text}: {_share(outcome.share)} of {outcome.runs} runs.")
    total = sum(map(len, results.values()))
    settings = f"{total:,} simulated rollouts, seed {options.seed}, scale {options.scale:g}, a look every minute."
    lines += ["", f"{settings} {report.machine()}"]
    return "\n".join(lines)


def _row(outcome: Outcome) -> str:
    promise, (low, high) = outcome.promise, outcome.limits
    sign = "≥" if promise.at_least else "≤"
    cells = [
        promise.text,
        f"{sign} {_share(promise.bound)}",
        _share(outcome.share),
        f"{_share(low)} to {_share(high)}",
        str(outcome.runs),
        outcome.standing,
        outcome.detail,
    ]
    return f"| {' | '.join(cells)} |"


def _share(share: float) -> str:
    return f"{share * 100:.2f} %" if share < 0.01 else f"{share * 100:.1f} %"


def picture(results: Results) -> str:
    quiet, spells = results["errors 2.0% at 60/min"], results["errors, spells"]
    return svg(
        [
            Panel(
                "A harmless target: false alarms of the error rate",
                "minutes since the start",
                480,
                0.4,
                [
                    Curve("z-test each minute", [r.z_test_minute for r in quiet if r.z_test_minute], len(quiet)),
                    Curve("this verdict", [r.failed_minute for r in quiet if r.failed_minute], len(quiet)),
                    Curve(
                        "this verdict, failing spells",
                        [r.failed_minute for r in spells if r.failed_minute],
                        len(spells),
                    ),
                ],
                line=0.025,
            ),
            Panel(
                "A bad target: caught after so many of its requests",
                "requests of the target",
                3000,
                1.0,
                [
                    _caught("errors 2 → 4 %", results["errors 2 to 4 %"], ERRORS),
                    _caught("errors 2 → 6 %", results["errors 2 to 6 %"], ERRORS),
                    _caught("errors 2 → 50 %", results["errors 2 to 50 %"], ERRORS),
                    _caught("latency average +30 %", results["latency +30 %"], AVERAGE),
                    _caught("latency p95 +50 %", results["p95 +50 %"], SLOW),
                ],
                logarithmic=True,
            ),
        ]
    )


def _caught(label: str, runs: Sequence[Run], metric: Metric) -> Curve:
    return Curve(label, [run.failed.get(metric, math.inf) for run in runs], len(runs))


def parse(arguments: Sequence[str]) -> Options:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="this share of the runs of every cell")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write-docs", action="store_true", help="put table and picture into docs/")
    parser.add_argument("--quick", action="store_true", help="a few runs of everything: under a minute")
    options = parser.parse_args(arguments)
    if options.scale <= 0 or options.processes < 1:
        parser.error("--scale and --processes have to be above 0")
    return Options(
        _QUICK_SCALE if options.quick else options.scale, options.processes, options.seed, options.write_docs
    )


def main(arguments: Sequence[str]) -> int:
    """0, or 1 when a promise is broken beyond chance."""
    options = parse(arguments)
    results = run_all(options)
    text = markdown(results, options)
    print(text)
    if options.write_docs:
        (DOCS / "rollouts.svg").write_text(picture(results))
        report.write(DOCS / "rollouts.md", text)
    return int(any(promise.outcome(results).broken for promise in PROMISES))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
