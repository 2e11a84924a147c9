"""A file of simulated rollouts, so that a later run continues an earlier one: JSON lines, one per chunk of runs, with
everything that the runs depend on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from benchmarks.rollouts.cells import Cell
from benchmarks.rollouts.digest import digest
from benchmarks.rollouts.runs import Run
from rollouts.evaluation.json_form import from_json, to_json
from rollouts.evaluation.state import FORMULA


@dataclass(frozen=True, slots=True)
class Chunk:
    cell: str
    first: int
    count: int
    seed: int


@dataclass(frozen=True, slots=True)
class Simulated:
    chunk: Chunk
    runs: list[Run]
    seconds: float


_Key = tuple[int, str, int]
"""Seed, cell, and number of the first run."""


class ResultsFile:
    def __init__(self, path: Path, cells: Mapping[str, Cell]) -> None:
        self._path = path
        self._digests = {name: digest(cell.world, cell.plan) for name, cell in cells.items()}
        self._held: dict[_Key, Simulated] = dict(self._lines()) if path.exists() else {}

    def get(self, chunk: Chunk) -> Simulated | None:
        """Returns None unless the file has all of the chunk. A run depends on its own number alone, so a longer chunk
        holds a shorter one."""
        held = self._held.get(_key(chunk))
        if held is None or held.chunk.count < chunk.count:
            return None
        return Simulated(chunk, held.runs[: chunk.count], held.seconds * chunk.count / held.chunk.count)

    def add(self, simulated: Simulated) -> None:
        chunk = simulated.chunk
        self._held[_key(chunk)] = simulated
        line = json.dumps(
            {
                "formula": FORMULA,
                "seed": chunk.seed,
                "cell": chunk.cell,
                "digest": self._digests[chunk.cell],
                "first": chunk.first,
                "seconds": round(simulated.seconds, 3),
                "runs": [_bare(run) for run in simulated.runs],
            },
            separators=(",", ":"),
        )
        with self._path.open("a") as file:
            file.write(f"{line}\n")

    def _lines(self) -> Iterator[tuple[_Key, Simulated]]:
        text = self._path.read_text()
        if not text.endswith("\n"):
            # The last line is of a simulation that was killed while it wrote.
            text = text[: text.rfind("\n") + 1]
            self._path.write_text(text)
        for line in text.splitlines():
            held = json.loads(line)
            if held["formula"] == FORMULA and held["digest"] == self._digests.get(held["cell"]):
                chunk = Chunk(held["cell"], held["first"], len(held["runs"]), held["seed"])
                yield _key(chunk), Simulated(chunk, [from_json(Run, run) for run in held["runs"]], held["seconds"])


def _key(chunk: Chunk) -> _Key:
    return chunk.seed, chunk.cell, chunk.first


def _bare(run: Run) -> dict[str, Any]:
    nothing = Run()
    return {
        field.name: to_json(getattr(run, field.name))
        for field in fields(run)
        if getattr(run, field.name) != getattr(nothing, field.name)
    }
