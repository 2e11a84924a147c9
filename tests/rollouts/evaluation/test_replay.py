"""Stored evaluations are reached again to the last digit, or the formula needs another number."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rollouts.evaluation import Metric, MinuteCounts, State, Verdict, decide, figures, replay
from rollouts.evaluation.json_form import from_json, to_json
from rollouts.states import Stage

STORED: Mapping[str, Any] = json.loads(Path(__file__).with_name("evaluations.json").read_text())


@pytest.mark.parametrize("name", STORED)
def test_replay__stored_minutes__the_stored_state_verdict_and_figures(name: str) -> None:
    stored = STORED[name]
    minutes = [from_json(MinuteCounts, minute) for minute in stored["minutes"]]

    state = replay(from_json(State, stored["initial"]), minutes)

    # What formulas since then have beside it is empty.
    assert state == from_json(State, stored["state"])
    verdict = decide(state, Stage(50, 5, 100), elapsed_minutes=30.0)
    # These rollouts have no evaluators.
    assert verdict == from_json(Verdict, {**stored["verdict"], "quality": None})
    assert {metric.value: to_json(figures(state, metric)) for metric in Metric} == stored["figures"]
