"""The table of fetches of prompts has a row for each kind."""

from __future__ import annotations

from benchmarks.prompts import table


def test_table__fetches__has_their_quantiles() -> None:
    lines = table({"by label": [float(value) for value in range(1, 101)]}).splitlines()

    assert lines[2:] == ["| by label | 100 | 50.00 | 95.00 | 99.00 |"]
