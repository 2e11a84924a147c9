"""The table of propagation times has a row for each kind of change."""

from __future__ import annotations

from benchmarks.propagation import table


def test_table__changes_seen_and_not__figures_of_the_seen() -> None:
    found = [float(value) for value in range(1, 101)]

    lines = table({"settings": [*found, None], "keys": [None]}).splitlines()

    assert lines[2:] == ["| settings | 101 | 50 | 95 | 100 | 1 |", "| keys | 1 | - | - | - | 1 |"]
