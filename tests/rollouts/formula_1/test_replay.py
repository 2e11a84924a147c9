"""Decisions of the first formula are reached again to the last digit by today's code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rollouts.evaluation.formula_1 import Metric, MinuteCounts, State, decide, explain, figures, replay
from rollouts.evaluation.json_form import from_json, to_json
from rollouts.states import Stage

STORED: Mapping[str, Any] = json.loads(Path(__file__).with_name("evaluations.json").read_text())
"""Returns evaluations as they were stored before the second formula existed."""


def evaluation(name: str) -> tuple[State, list[MinuteCounts]]:
    stored = STORED[name]
    return from_json(State, stored["initial"]), [from_json(MinuteCounts, minute) for minute in stored["minutes"]]


@pytest.mark.parametrize("name", STORED)
def test_replay__stored_minutes__give_the_stored_state(name: str) -> None:
    initial, minutes = evaluation(name)

    assert to_json(replay(initial, minutes)) == STORED[name]["state"]


@pytest.mark.parametrize("name", STORED)
def test_replay__stored_verdicts__are_reached_again_with_their_figures_and_words(name: str) -> None:
    initial, minutes = evaluation(name)

    for one in STORED[name]["verdicts"]:
        state = replay(initial, minutes[: one["minutes"]])
        verdict = decide(state, Stage(*one["stage"]), elapsed_minutes=one["elapsed_minutes"])
        assert to_json(verdict) == one["verdict"]
        assert {metric.value: to_json(figures(state, metric)) for metric in Metric} == one["figures"]
        assert {metric.value: explain(state, metric) for metric in Metric} == one["explanations"]
        assert (to_json(state.target), to_json(state.baseline)) == (one["target"], one["baseline"])
        assert state.sample_ratio.evidence == one["sample_ratio"]
