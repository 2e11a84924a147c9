"""Known faults that are being fixed: fields that vanish without a warning, each with the person who works on it.

The test is strict in both directions, so an entry without a remaining fault fails as well. A fix removes its path (or
its provider), and the entry when it is empty: `python -m pytest tests/integrations/fields/test_fields.py -k <provider>`
lists the remaining ones.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Known:
    """A known fault. `paths` have the form described in `silence.py`. `rows` means that it also occurs at the providers
    of OpenAI's dialect."""

    owner: str
    providers: tuple[str, ...]
    paths: tuple[str, ...]
    rows: bool = False


KNOWN: tuple[Known, ...] = ()
