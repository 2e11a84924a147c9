"""`python -m benchmarks.rollouts` holds simulated rollouts against the promises of the verdict. See
benchmarks/README.md."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from benchmarks import report
from benchmarks.rollouts import comparison
from benchmarks.rollouts.cells import CELLS
from benchmarks.rollouts.outcomes import Outcome, Results
from benchmarks.rollouts.panels import panels
from benchmarks.rollouts.picture import svg
from benchmarks.rollouts.promises import PROMISES, REMARKS
from benchmarks.rollouts.results import Chunk, ResultsFile, Simulated
from benchmarks.rollouts.runs import Run, simulate
from benchmarks.targets.base import ROOT

DOCS = ROOT / "docs"
_CHUNK = 10
_QUICK_SCALE = 0.002


@dataclass(frozen=True, slots=True)
class Options:
    scale: float
    processes: int
    seed: int
    write_docs: bool
    cells: tuple[str, ...]
    results: Path | None = None
    show: bool = False


def run_chunk(chunk: Chunk) -> Simulated:
    cell, began = CELLS[chunk.cell], time.process_time()
    numbers = range(chunk.first, chunk.first + chunk.count)
    runs = [simulate(cell.world, cell.plan, f"{chunk.seed}:{chunk.cell}:{number}") for number in numbers]
    return Simulated(chunk, runs, time.process_time() - began)


def run_all(options: Options) -> list[Simulated]:
    chunks, file = _chunks(options), ResultsFile(options.results, CELLS) if options.results else None
    held = {chunk: one for chunk in chunks if file and (one := file.get(chunk))}
    with tqdm(total=sum(chunk.count for chunk in chunks), desc="simulating", unit="rollout") as progress:
        progress.update(sum(chunk.count for chunk in held))
        missing = [] if options.show else [chunk for chunk in chunks if chunk not in held]
        for simulated in _each(missing, options.processes):
            held[simulated.chunk] = simulated
            progress.update(simulated.chunk.count)
            if file:
                file.add(simulated)
    return [held[chunk] for chunk in chunks if chunk in held]


def by_cell(simulated: Sequence[Simulated]) -> Results:
    results: dict[str, list[Run]] = {}
    for one in simulated:
        results.setdefault(one.chunk.cell, []).extend(one.runs)
    return results


def _chunks(options: Options) -> list[Chunk]:
    """Returns the first chunks of every cell before the second ones: after an interruption all cells have about as many
    runs."""
    chunks = []
    for name in options.cells:
        runs = _runs(name, options)
        chunks += [Chunk(name, first, min(_CHUNK, runs - first), options.seed) for first in range(0, runs, _CHUNK)]
    return sorted(chunks, key=lambda chunk: chunk.first)


def _runs(cell: str, options: Options) -> int:
    return max(2, round(CELLS[cell].runs * options.scale))


def _each(chunks: Sequence[Chunk], processes: int) -> Iterator[Simulated]:
    if processes == 1:
        yield from map(run_chunk, chunks)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(run_chunk, chunks)


def cost(simulated: Sequence[Simulated], options: Options) -> str:
    spent, lacking, took = 0.0, 0, 0.0
    for name in options.cells:
        mine = [one for one in simulated if one.chunk.cell == name]
        seconds, done = sum(one.seconds for one in mine), sum(one.chunk.count for one in mine)
        missing = _runs(name, options) - done
        spent, lacking = spent + seconds, lacking + missing
        took += missing * seconds / done if done else 0.0
    text = f"The runs took {spent / 3600:.2f} h of CPU time."
    return f"{text} {lacking:,} are missing, which would take {took / 3600:.2f} h." if lacking else text


def markdown(results: Results, options: Options) -> str:
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
        f"{sign} {promise.bound * 100:.4g} %" if promise.bound else "never",
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
    parser.add_argument("--write-docs", action="store_true", help="renew table and picture")
    parser.add_argument("--quick", action="store_true", help="two or more runs of everything: under a minute")
    parser.add_argument("--results", type=Path, metavar="FILE", help="keep the runs there, and go on where it ends")
    parser.add_argument("--show", action="store_true", help="simulate nothing: show what the file of --results has")
    parser.add_argument("--only", action="append", metavar="NAME", help="only the cells whose names hold this text")
    options = parser.parse_args(arguments)
    if options.scale <= 0 or options.processes < 1:
        parser.error("--scale and --processes have to be above 0")
    cells = tuple(name for name in CELLS if not options.only or any(text in name for text in options.only))
    if not cells:
        parser.error(f"--only: no cell is called so. There are: {'; '.join(CELLS)}")
    if options.write_docs and len(cells) < len(CELLS):
        parser.error("--write-docs needs all cells, so it does not go with --only")
    if options.show and (options.write_docs or not options.results):
        parser.error("--show needs --results, and does not go with --write-docs")
    scale = _QUICK_SCALE if options.quick else options.scale
    return Options(scale, options.processes, options.seed, options.write_docs, cells, options.results, options.show)


def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    simulated = run_all(options)
    results = by_cell(simulated)
    text = markdown(results, options)
    print(text)
    print(cost(simulated, options))
    if options.write_docs:
        (DOCS / "rollouts.svg").write_text(svg(panels(results)))
        report.write(ROOT / "benchmarks/results/rollouts.md", text)
    return int(any(promise.outcome(results).broken for promise in PROMISES if _was_run(promise.cells, results)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
