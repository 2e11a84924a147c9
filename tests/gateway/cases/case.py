"""The cases: one file each, with a client's request, the vendor's answers to it, and what the client is to see.

The files of SHARED_DIR describe their format in the README beside them; those in `own` have the same one. A clone
without SHARED_DIR runs its own alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.recordings import SHARED_DIR

OWN = Path(__file__).resolve().parent / "own"
_SURFACES = {"completions": "completions", "responses": "responses", "messages": "messages", "embeddings": "embeddings"}


@dataclass(frozen=True)
class Case:
    """One file. `providers` are those of the project, in the order in which their answers stand in `upstream`; `prices`
    are its own, by provider and model, as the management API names them; `unpriced` are the models without a price."""

    kind: str
    name: str
    providers: tuple[str, ...]
    request: Mapping[str, Any]
    upstream: tuple[Mapping[str, Any], ...]
    prices: Mapping[str, Mapping[str, str]]
    unpriced: frozenset[str]
    expected: Mapping[str, Any]

    def __str__(self) -> str:
        return self.name

    @cached_property
    def surface(self) -> str:
        """The client's protocol: `chat`, or the last word of the path."""
        path = str(self.request["path"])
        return "chat" if path.endswith("/chat/completions") else _SURFACES[path.rpartition("/")[2]]


def load(file: Path) -> Case:
    fields = json.loads(file.read_bytes())
    return Case(
        kind=fields["kind"],
        name=fields["name"],
        providers=tuple(fields["provider"].split(", then ")),
        request=fields["request"],
        upstream=tuple(fields["upstream"]),
        prices=fields.get("prices", {}),
        unpriced=frozenset(fields.get("unpriced", ())),
        expected=fields["expected"],
    )


def all_cases() -> list[Case]:
    """Returns the cases, those of SHARED_DIR before our own."""
    files = [*sorted((SHARED_DIR / "cases").glob("*.json")), *sorted(OWN.glob("*.json"))]
    return [*map(load, files)]
