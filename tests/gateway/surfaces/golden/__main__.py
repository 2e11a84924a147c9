"""Writes the sequences anew: `python -m tests.gateway.surfaces.golden`. A change in them is a change for clients."""

from __future__ import annotations

from tests.gateway.surfaces.golden.streams import SEQUENCES, SURFACES, WAYS
from tests.gateway.surfaces.golden.test_sequences import sequence_of

for surface in SURFACES:
    (SEQUENCES / surface).mkdir(parents=True, exist_ok=True)
    for dialect in WAYS:
        (SEQUENCES / surface / f"{dialect}.txt").write_text(sequence_of(surface, dialect), encoding="utf-8")
