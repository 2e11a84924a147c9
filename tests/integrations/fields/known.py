"""Faults that are known and being mended: fields that vanish in silence, each with who is on it.

The test is strict in both directions: an entry of which nothing is left fails as well. Whoever mends one takes out its
path (or its provider), and the entry when nothing is left of it:
`python -m pytest tests/integrations/fields/test_fields.py -k <provider>` says which.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Known:
    """`paths` as in `silence.py`. `rows`: at the providers of OpenAI's dialect as well."""

    owner: str
    providers: tuple[str, ...]
    paths: tuple[str, ...]
    rows: bool = False


KNOWN: tuple[Known, ...] = ()
