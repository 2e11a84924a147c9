"""A file of simulated rollouts, so that a later run continues an earlier one: JSON lines, one per chunk of runs, with a
digest of all that they depend on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.quality.runs import Run
from benchmarks.quality.worlds import World
from benchmarks.rollouts.digest import digest
from benchmarks.rollouts.runs import Plan
from benchmarks.rollouts.worlds import World as WorldOfMetrics
from rollouts.evaluation.json_form import from_json, to_json

_HERE = Path(__file__).parent
_DRAWING = ("runs", "traffic", "worlds")


@dataclass(frozen=True, slots=True)
class Chunk:
    world: World
    first: int
    count: int


class ResultsFile:
    def __init__(self, path: Path | None, worlds: Sequence[World]) -> None:
        self._path = path
        self._digests = {world: _digest(world) for world in worlds}
        self._held: dict[tuple[str, int], list[Run]] = {}
        if path is not None and path.exists():
            for line in path.read_text().splitlines():
                held = json.loads(line)
                self._held[held["digest"], held["first"]] = [from_json(Run, run) for run in held["runs"]]

    def get(self, chunk: Chunk) -> list[Run] | None:
        held = self._held.get((self._digests[chunk.world], chunk.first), [])
        return held[: chunk.count] if len(held) >= chunk.count else None

    def add(self, chunk: Chunk, runs: Sequence[Run]) -> None:
        if self._path is not None:
            line: Mapping[str, object] = {
                "digest": self._digests[chunk.world],
                "first": chunk.first,
                "runs": [to_json(run) for run in runs],
            }
            with self._path.open("a") as file:
                file.write(json.dumps(line, separators=(",", ":")) + "\n")


def _digest(world: World) -> str:
    # The digest of rollouts without scores covers the code that evaluates, and that of the other metrics.
    parts = [repr(world), digest(WorldOfMetrics(), Plan())]
    parts += [(_HERE / f"{name}.py").read_text() for name in _DRAWING]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
