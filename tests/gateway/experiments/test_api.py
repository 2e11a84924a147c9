"""The endpoints of experiments: item, rights, texts, choices, deletion."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from core.roles import Role
from gateway.models import Experiment, ExperimentAnswer
from gateway.retention import expire_judgements
from integrations.models import ModelPrice
from tests.factories.core import client_of, make_project, make_staff
from tests.factories.prompts import make_config
from tests.gateway.experiments.conftest import PATH, Scene, run_all
from tests.tables.cases import tabled


@tabled
def test_create__bad_input__400_names_the_field(scene: Scene, fields: dict[str, Any], named: str) -> None:
    scene.past()
    body = {"candidates": [{}, {"model": "m"}], **fields}

    answer = scene.api.post(PATH, body, format="json")

    assert answer.status_code == 400, answer.content
    assert any(name.startswith(named) for name in answer.json()["error"]["details"])
    assert not Experiment.objects.exists()


def test_create__nothing_matches__409(scene: Scene) -> None:
    scene.past(model="other")

    answer = scene.api.post(PATH, {"candidates": [{}, {"model": "m"}], "filter": {"model": "none"}}, format="json")

    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "no_items")


def test_create__sample__newest_first_and_of_clients_alone(scene: Scene) -> None:
    expected = [scene.past(f"Question {number}") for number in range(4)]
    scene.past("of the playground", source="playground")

    newest = scene.create(item_limit=3)
    drawn = [scene.create(item_limit=3, order="random") for _ in range(2)]

    assert [entry["request_id"] for entry in scene.items(newest["id"])] == expected[:0:-1]
    first, second = ([entry["request_id"] for entry in scene.items(made["id"])] for made in drawn)
    assert first == second
    assert len(first) == 3 and set(first) <= set(expected)


def test_estimate__priced_model__costs_by_past_tokens(scene: Scene) -> None:
    ModelPrice.objects.create(
        provider="openai", model="gpt-4.1", input_cost_per_1m="2", output_cost_per_1m="10", source="manual"
    )
    for _ in range(2):
        scene.past(prompt_tokens=1000, completion_tokens=100, cost_usd="0.0050000000")
    body = {"candidates": [{}, {"model": "openai/gpt-4.1"}, {"model": "openai/unheard-of"}]}

    found = scene.api.post(f"{PATH}/estimate", body, format="json").json()

    assert found["item_count"] == 2
    assert [one["cost_usd"] for one in found["candidates"]] == [0.01, 0.006, None]
    assert found["total_cost_usd"] is None
    known = scene.api.post(f"{PATH}/estimate", {"candidates": body["candidates"][:2]}, format="json").json()
    assert known["total_cost_usd"] == 0.016
    assert not Experiment.objects.exists()


def test_winner__picked_and_taken_back__counts_in_the_summary(scene: Scene) -> None:
    for number in range(3):
        scene.past(f"Question {number}")
    made = scene.create()
    path = f"{PATH}/{made['id']}/items"
    for position, winner in ((1, "B"), (2, "B"), (3, "tie")):
        answer = scene.api.put(f"{path}/{position}/winner", {"winner": winner}, format="json")
        assert (answer.status_code, answer.json()["winner"], answer.json()["verdict"]) == (200, winner, winner)

    first, second = scene.experiment(made["id"])["summary"]
    assert (first["wins"], second["wins"], second["ties"], second["compared"]) == (0, 2, 1, 3)
    assert second["win_rate"] == pytest.approx(2.5 / 3)
    assert second["win_rate_low"] < second["win_rate"] < second["win_rate_high"] <= 1

    scene.api.put(f"{path}/1/winner", {"winner": None}, format="json")
    assert scene.experiment(made["id"])["summary"][1]["compared"] == 2
    for bad, status in (({"winner": "E"}, 400), ({}, 400)):
        assert scene.api.put(f"{path}/1/winner", bad, format="json").status_code == status
    assert scene.api.put(f"{path}/9/winner", {"winner": "A"}, format="json").status_code == 404


def test_delete__experiment__gone_with_its_answers(scene: Scene) -> None:
    scene.past()
    made = scene.create()

    assert scene.api.delete(f"{PATH}/{made['id']}").status_code == 204

    assert not ExperimentAnswer.objects.exists()
    assert scene.api.get(f"{PATH}/{made['id']}").status_code == 404


def test_stranger__knows_the_id__sees_and_changes_nothing(scene: Scene) -> None:
    scene.past()
    made = scene.create()
    stranger = client_of(make_project())

    for method, rest in (("get", ""), ("get", "/items"), ("post", "/cancel"), ("delete", "")):
        assert getattr(stranger, method)(f"{PATH}/{made['id']}{rest}").status_code == 404
    own = make_config(scene.project, versions=1)
    taken = stranger.post(PATH, {"candidates": [{}, {"version_id": str(own.active_version_id)}]}, format="json")
    assert taken.status_code == 400
    assert stranger.get(PATH).json()["count"] == 0


def test_reader_without_content__experiment__has_no_texts(scene: Scene) -> None:
    scene.past("marzipan")
    made = scene.create()
    run_all()
    client = APIClient()
    client.force_login(make_staff(Role.READER_WITHOUT_CONTENT, scene.project))
    headers = {"x-project-id": str(scene.project.pk)}

    shown = client.get(f"{PATH}/{made['id']}/items", headers=headers).json()["results"][0]

    assert (shown["preview"], shown["answers"][0]["message"]) == (None, None)
    assert shown["answers"][0]["state"] == "done"
    assert client.post(f"{PATH}/{made['id']}/cancel", {}, format="json", headers=headers).status_code == 403


def test_retention__old_experiment__is_deleted(scene: Scene) -> None:
    scene.past()
    scene.create()
    Experiment.objects.update(created_at="2020-01-01T00:00:00Z")

    expire_judgements()

    assert not Experiment.objects.exists()
