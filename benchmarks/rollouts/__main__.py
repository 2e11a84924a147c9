"""`python -m benchmarks.rollouts` holds simulated rollouts against the promises of the verdict. See
benchmarks/README.md."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from tqdm import tqdm

from benchmarks import report
from benchmarks.rollouts import comparison
from benchmarks.rollouts.cells import CELLS
from benchmarks.rollouts.outcomes import Outcome, Results
from benchmarks.rollouts.panels import panels
from benchmarks.rollouts.picture import svg
from benchmarks.rollouts.promises import PROMISES, REMARKS
from benchmarks.rollouts.runs import Run, simulate
from benchmarks.targets.base import ROOT

DOCS = ROOT / "docs"
_CHUNK = 10
_QUICK_SCALE = 0.002


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a run; `cells` are the names of the cells to run."""

    scale: float
    processes: int
    seed: int
    write_docs: bool
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk of runs of one cell, which one process simulates at a time."""

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
    results: dict[str, list[Run]] = {name: [] for name in options.cells}
    total = sum(chunk.count for chunk in chunks)
    with tqdm(total=total, desc="simulating", unit="rollout") as progress:
        for name, runs in _each(chunks, options.processes):
            results[name] += runs
            progress.update(len(runs))
    return results


def _chunks(options: Options) -> list[Chunk]:
    chunks = []
    for name in options.cells:
        runs = max(2, round(CELLS[name].runs * options.scale))
        chunks += [Chunk(name, first, min(_CHUNK, runs - first), options.seed) for first in range(0, runs, _CHUNK)]
    return chunks


def _each(chunks: Sequence[Chunk], processes: int) -> Iterator[tuple[str, list[Run]]]:
    if processes == 1:
        yield from map(run_chunk, chunks)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(run_chunk, chunks)


def markdown(results: Results, options: Options) -> str:
    """Returns a Markdown table of the promises whose cells were run, the remarks, and the comparison with the usual
    tests."""
    promised = [promise.outcome(results) for promise in PROMISES if _was_run(promise.cells, results)]
    lines = ["| Promise | Bound | Measured | 95 % limits | Runs | | Besides |", "|---" * 7 + "|"]
    lines += map(_row, promised)
    lines.append("")
    for remark in REMARKS:
        if _was_run(remark.cells, results):
            outcome = remark.outcome(results)
            detail = f" ({outcome.detail})" if outcome.detail else ""
            lines.append(f"- {remark.text}: {_share(outcome.share)} of {outcome.runs} runs{detail}.")
    lines += ["", *comparison.table(results)]
    total = sum(map(len, results.values()))
    settings = f"{total:,} simulated rollouts, seed {options.seed}, scale {options.scale:g}, a look every minute."
    lines += ["", f"{settings} {report.machine()}"]
    return "\n".join(lines)


def _was_run(cells: Sequence[str], results: Results) -> bool:
    return all(results.get(cell) for cell in cells)


def _row(outcome: Outcome) -> str:
    promise, (low, high) = outcome.promise, outcome.limits
    sign = "≥" if promise.at_least else "≤"
    cells = [
        promise.text,
        f"{sign} {_share(promise.bound)}" if promise.bound else "never",
        _share(outcome.share),
        f"{_share(low)} to {_share(high)}",
        str(outcome.runs),
        outcome.standing,
        outcome.detail,
    ]
    return f"| {' | '.join(cells)} |"


def _share(share: float) -> str:
    return f"{share * 100:.2f} %" if share < 0.01 else f"{share * 100:.1f} %"


def parse(arguments: Sequence[str]) -> Options:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rollouts", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="this share of the runs of every cell")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write-docs", action="store_true", help="put table and picture into docs/")
    parser.add_argument("--quick", action="store_true", help="two or more runs of everything: under a minute")
    parser.add_argument("--only", action="append", metavar="NAME", help="only the cells whose names hold this text")
    options = parser.parse_args(arguments)
    if options.scale <= 0 or options.processes < 1:
        parser.error("--scale and --processes have to be above 0")
    cells = tuple(name for name in CELLS if not options.only or any(text in name for text in options.only))
    if not cells:
        parser.error(f"--only: no cell is called so. There are: {'; '.join(CELLS)}")
    if options.write_docs and len(cells) < len(CELLS):
        parser.error("--write-docs needs all cells, so it does not go with --only")
    scale = _QUICK_SCALE if options.quick else options.scale
    return Options(scale, options.processes, options.seed, options.write_docs, cells)


def main(arguments: Sequence[str]) -> int:
    """Runs the simulations. Returns 0, or 1 when a promise is broken beyond chance."""
    options = parse(arguments)
    results = run_all(options)
    text = markdown(results, options)
    print(text)
    if options.write_docs:
        (DOCS / "rollouts.svg").write_text(svg(panels(results)))
        report.write(DOCS / "rollouts.md", text)
    return int(any(promise.outcome(results).broken for promise in PROMISES if _was_run(promise.cells, results)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
