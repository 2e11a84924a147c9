"""`python -m benchmarks.quality` simulates the scores of rollouts whose truth is known: how often do they fail or pass
a target? See benchmarks/README.md.

Minutes are handed over as if all their tasks had ended at once: real verdicts come later by the slowest task, and are
the same.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tqdm import tqdm

from benchmarks import report
from benchmarks.quality.lines import LINES, WORLDS, Line, Outcome
from benchmarks.quality.results import Chunk, ResultsFile
from benchmarks.quality.runs import Run, simulate
from benchmarks.quality.worlds import World
from benchmarks.targets.base import ROOT

PAGE = ROOT / "benchmarks" / "results" / "quality.md"
_CHUNK = 20


def run_chunk(chunk: Chunk) -> list[Run]:
    return [
        simulate(chunk.world, f"{chunk.world}:{number}") for number in range(chunk.first, chunk.first + chunk.count)
    ]


def run_all(options: argparse.Namespace, worlds: Sequence[World]) -> Mapping[World, list[Run]]:
    chunks, file = list(_chunks(options.runs, worlds)), ResultsFile(options.results, worlds)
    held = {chunk: runs for chunk in chunks if (runs := file.get(chunk)) is not None}
    missing = [] if options.show else [chunk for chunk in chunks if chunk not in held]
    with tqdm(total=sum(chunk.count for chunk in missing), desc="simulating", unit="rollout") as progress:
        for chunk, runs in _each(missing, options.processes):
            held[chunk] = runs
            file.add(chunk, runs)
            progress.update(chunk.count)
    found: dict[World, list[Run]] = {}
    for chunk in chunks:
        if chunk in held:
            found.setdefault(chunk.world, []).extend(held[chunk])
    return found


def _chunks(most: int | None, worlds: Sequence[World]) -> list[Chunk]:
    chunks = []
    for world in worlds:
        runs = WORLDS[world] if most is None else most
        chunks += [Chunk(world, first, min(_CHUNK, runs - first)) for first in range(0, runs, _CHUNK)]
    return sorted(chunks, key=lambda chunk: chunk.first)


def _each(chunks: Sequence[Chunk], processes: int) -> Iterator[tuple[Chunk, list[Run]]]:
    if processes == 1:
        yield from ((chunk, run_chunk(chunk)) for chunk in chunks)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from zip(chunks, pool.map(run_chunk, chunks), strict=True)


def table(outcomes: Sequence[Outcome]) -> str:
    lines = ["| Line | | Bound | Measured | 95 % limits | Runs | | Besides |", f"|{'---|' * 8}"]
    return "\n".join([*lines, *map(_row, outcomes)])


def _row(outcome: Outcome) -> str:
    line, (low, high) = outcome.line, outcome.limits
    cells = [
        line.number,
        line.text,
        _bound(line),
        _share(outcome.count / outcome.runs),
        f"{_share(low)} to {_share(high)}",
        str(outcome.runs),
        outcome.standing,
        outcome.detail,
    ]
    return f"| {' | '.join(cells)} |"


def _bound(line: Line) -> str:
    if line.bound is None:
        return ""
    if line.bound == 0:
        return "never"
    return f"{'≥' if line.at_least else '≤'} {line.bound * 100:.4g} %"


def _share(share: float) -> str:
    return f"{share * 100:.2f} %" if share < 0.01 else f"{share * 100:.1f} %"


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality", description=__doc__)
    parser.add_argument("--runs", type=int, help="of each world; left out: 1,000 of line 9, else 2,000")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", action="append", metavar="LINE", help="only the lines of this number")
    parser.add_argument("--results", type=Path, metavar="FILE", help="keep the runs there, and go on where it ends")
    parser.add_argument("--show", action="store_true", help="simulate nothing: show what the file of --results has")
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.relative_to(ROOT)}")
    options = parser.parse_args(arguments)
    if options.processes < 1 or (options.runs is not None and options.runs < 1):
        parser.error("--runs and --processes have to be above 0")
    numbers = dict.fromkeys(line.number for line in LINES)
    if unknown := [number for number in options.only or () if number not in numbers]:
        parser.error(f"--only: there is no line {unknown[0]}, but {', '.join(numbers)}")
    if options.show and options.results is None:
        parser.error("--show needs --results")
    if options.write and options.only:
        parser.error("--write needs all lines, so it does not go with --only")
    return options


def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    lines = [line for line in LINES if not options.only or line.number in options.only]
    worlds = [world for world in WORLDS if any(world in line.worlds for line in lines)]
    results = run_all(options, worlds)
    outcomes = [outcome for line in lines if (outcome := line.outcome(results)) is not None]
    total = sum(map(len, results.values()))
    text = f"{table(outcomes)}\n\n{total:,} simulated rollouts, a look every minute. {report.machine()}"
    print(text)
    if options.write:
        report.write(PAGE, text)
    return int(any(outcome.broken for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
