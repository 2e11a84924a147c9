from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from agent.tools import registry
from agent.tools.base import OUTPUT_CHARACTERS
from core.roles import Right
from gateway.models import Experiment
from tests.agent.tools.world import World


@pytest.fixture
def world(kept_world: World, db: None) -> World:
    return kept_world


def test_items__reader_without_content__figures_and_no_texts(world: World) -> None:
    whole = world.ask("list_experiment_items", experiment_id=world.experiment_id)
    rights = world.context.granted.rights - {Right.READ_CONTENT}
    context = replace(world.context, granted=replace(world.context.granted, rights=rights))

    outcome = registry.call(context, "list_experiment_items", {"experiment_id": world.experiment_id})

    first, second = json.loads(outcome.content)["results"]
    assert [item["preview"] for item in whole["results"]] == [f"{world.marker} asks"] * 2
    assert [item["preview"] for item in (first, second)] == [None, None]
    for answer in (*first["answers"], *second["answers"]):
        assert (answer["message"], answer["scores"][0]["detail"]) == (None, None)
    assert [answer["scores"][0]["value"] for answer in second["answers"]] == [1.0, 0.0]


def test_estimate__reader_who_may_not_edit__refused(world: World) -> None:
    rights = world.context.granted.rights - {Right.EDIT}
    context = replace(world.context, granted=replace(world.context.granted, rights=rights))

    outcome = registry.call(context, "estimate_experiment", {"candidates": [{}], "dataset_id": world.dataset_id})

    assert json.loads(outcome.content)["error"]["code"] == "permission_denied"
    assert "estimate_experiment" not in {tool.name for tool in registry.offered(context.granted)}


def test_estimate__what_the_api_refuses__error_names_the_field(world: World) -> None:
    one: dict[str, Any] = {"candidates": [{}]}
    both = {**one, "dataset_id": world.dataset_id, "model": "gpt-4o"}
    for arguments, field in ((one, "candidates"), (both, "filter"), ({**one, "dataset_version": 1}, "candidates")):
        outcome = world.call("estimate_experiment", arguments)

        error = json.loads(outcome.content)["error"]
        assert (error["code"], list(error["details"])) == ("invalid_value", [field])


def test_report__of_ten_evaluators__is_told_whole(world: World) -> None:
    (target,) = _report(world, "B")

    assert target["explanation"] == _EXPLANATION
    assert [one["title"] for one in target["evaluators"]] == _TITLES
    assert [list(one["scores"]) for one in target["worst_items"]] == [_TITLES] * 5


def test_report__of_the_largest_experiment__every_verdict_is_told(world: World) -> None:
    found = _report(world, "BCD")

    assert [(one["label"], one["verdict"]) for one in found] == [(label, "undecided") for label in "BCD"]


_EXPLANATION = "It is undecided. " * 20
_TITLES = [f"a judge with a long name {number}@12" for number in range(10)]


def _report(world: World, labels: str) -> list[dict[str, Any]]:
    experiment = Experiment.objects.get(pk=world.experiment_id)
    report: dict[str, Any] = experiment.report or {}
    (target,) = report["targets"]
    (figures,) = target["evaluators"]
    odd = {name: 0.1234567890123456 if type(value) is float else value for name, value in figures.items()}
    scores = {title: {"target": 0.123456789012345, "baseline": 0.9123456789012345} for title in _TITLES}
    several = {
        **target,
        "explanation": _EXPLANATION,
        "evaluators": [{**odd, "title": title, "newly_failed": [*range(900, 910)]} for title in _TITLES],
        "worst_items": [{"position": place, "difference": -7.8, "scores": scores} for place in range(10)],
    }
    report["targets"] = [{**several, "label": label} for label in labels]
    experiment.save(update_fields=["report"])
    outcome = world.call("get_experiment", {"experiment_id": world.experiment_id})
    assert len(outcome.content) <= OUTPUT_CHARACTERS
    found: list[dict[str, Any]] = json.loads(outcome.content)["report"]["targets"]
    return found
