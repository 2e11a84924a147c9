"""Data sets over the API: made, versioned item by item, and read as any version had them."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from analytics.datasets import services
from analytics.models import Dataset, DatasetItem
from core.models import Project
from core.roles import Role
from tests.analytics.reviews.test_queues_api import person_of
from tests.factories.datasets import item_body, make_dataset

URL = "/api/llm/datasets"
pytestmark = pytest.mark.django_db


def path_of(dataset: Dataset, *parts: object) -> str:
    return "/".join([URL, str(dataset.pk), *(str(part) for part in parts)])


def texts_of(api: APIClient, dataset: Dataset, **query: Any) -> list[str]:
    answer = api.get(path_of(dataset, "items"), query)
    assert answer.status_code == 200, answer.content
    return [item["preview"] for item in answer.json()["results"]]


def first_item(api: APIClient, dataset: Dataset) -> dict[str, Any]:
    found: dict[str, Any] = api.get(path_of(dataset, "items")).json()["results"][0]
    return found


def test_dataset__made_changed_and_deleted__is_what_was_said(api: APIClient) -> None:
    made = api.post(URL, {"name": "Support", "description": "Hard ones", "retention": "kept"}, format="json")
    assert made.status_code == 201, made.content
    body = made.json()
    assert (body["version"], body["item_count"], body["retention"]) == (0, 0, "kept")
    address = f"{URL}/{body['id']}"

    changed = api.patch(address, {"name": "Help", "retention": "project"}, format="json")

    assert changed.json()["name"] == "Help" and changed.json()["description"] == "Hard ones"
    assert api.get(address).json() == changed.json()
    assert [one["id"] for one in api.get(URL).json()["results"]] == [body["id"]]
    assert api.delete(address).status_code == 204
    gone = api.get(address)
    assert (gone.status_code, gone.json()["error"]["code"]) == (404, "dataset_not_found")


def test_dataset__name_known__409(api: APIClient, project: Project) -> None:
    first, second = make_dataset(project, items=0), make_dataset(project, items=0)

    answers = [
        api.post(URL, {"name": first.name}, format="json"),
        api.patch(path_of(second), {"name": first.name}, format="json"),
    ]

    assert [(one.status_code, one.json()["error"]["code"]) for one in answers] == [(409, "dataset_exists")] * 2
    assert api.patch(path_of(first), {"name": first.name}, format="json").status_code == 200


def test_versions__items_added_changed_and_removed__each_is_read_as_it_was(api: APIClient, project: Project) -> None:
    dataset = make_dataset(project, items=2)
    item = first_item(api, dataset)

    changed = api.patch(path_of(dataset, "items", item["id"]), {"expected": {"a": 1}, "tags": ["de"]}, format="json")
    added = api.post(path_of(dataset, "items"), {"items": [item_body("More"), item_body("Even more")]}, format="json")
    removed = api.delete(path_of(dataset, "items", item["id"]))

    assert (changed.status_code, added.status_code, removed.status_code) == (200, 201, 204), changed.content
    assert changed.json()["id"] == item["id"] and changed.json()["expected"] == {"a": 1}
    assert added.json()["added"] == 2 and added.json()["dataset"]["version"] == 3
    assert texts_of(api, dataset, version=0) == []
    assert texts_of(api, dataset, version=1) == ["Question 1", "Question 2"]
    second = api.get(path_of(dataset, "items"), {"version": 2}).json()["results"]
    assert [(one["expected"], one["tags"]) for one in second] == [({"a": 1}, ["de"]), ("Answer 2", [])]
    assert texts_of(api, dataset, version=3) == ["Question 1", "Question 2", "More", "Even more"]
    assert texts_of(api, dataset) == texts_of(api, dataset, version=4) == ["Question 2", "More", "Even more"]
    assert api.get(path_of(dataset)).json()["item_count"] == 3
    history = api.get(path_of(dataset, "versions")).json()["results"]
    assert [(one["version"], one["action"], one["items"]) for one in history] == [
        (4, "removed", 1),
        (3, "added", 2),
        (2, "changed", 1),
        (1, "added", 2),
    ]


def test_versions__nothing_differs__none_is_made(api: APIClient, project: Project) -> None:
    dataset = make_dataset(project)
    item = first_item(api, dataset)

    same = api.patch(path_of(dataset, "items", item["id"]), {"expected": item["expected"]}, format="json")

    assert same.status_code == 200
    assert api.get(path_of(dataset)).json()["version"] == dataset.version == 1


@pytest.mark.parametrize("version", ["2", "-1", "latest", "99999999999999999999"])
def test_items__of_no_version__400_naming_it(api: APIClient, project: Project, version: str) -> None:
    answer = api.get(path_of(make_dataset(project), "items"), {"version": version})

    assert answer.status_code == 400, answer.content
    assert answer.json()["error"]["message"].startswith("version: ")


def test_items__by_tag__only_those_with_exactly_it(api: APIClient, project: Project) -> None:
    dataset = make_dataset(project, items=0)
    tags = [["de"], ["DE"], ["de-at", "x_y"], ["x%y", "de"], []]
    bodies = [item_body(f"Item {place}", tags=found) for place, found in enumerate(tags)]
    assert api.post(path_of(dataset, "items"), {"items": bodies}, format="json").status_code == 201

    assert texts_of(api, dataset, tag="de") == ["Item 0", "Item 3"]
    assert texts_of(api, dataset, tag="x_y") == ["Item 2"]
    assert texts_of(api, dataset, tag="%") == []


@pytest.mark.parametrize(
    ("item", "field"),
    [
        ({}, "messages"),
        ({"messages": ["Hello"]}, "messages.0"),
        ({"messages": [{"content": "Hello"}]}, "messages.0.role"),
        ({"messages": [{"role": "robot", "content": "Hello"}]}, "messages.0.role"),
        ({"messages": [{"role": ["user"], "content": "Hello"}]}, "messages.0.role"),
        ({"messages": [{"role": "user"}]}, "messages.0.content"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages.0.content"),
        ({"messages": [{"role": "user", "content": [{"text": "Hello"}]}]}, "messages.0.content.0"),
        (item_body(parameters={"messages": []}), "parameters.messages"),
        (item_body(parameters={"stream": True}), "parameters.stream"),
        (item_body(tags=["a\nb"]), "tags.0"),
        (item_body(prompt_version=3), "prompt_config_id"),
        (item_body("x" * 262_144), "items.1"),
        (item_body(tags=["x" * 51]), "tags.0"),
        (item_body(tags=[str(number) for number in range(21)]), "tags"),
        (None, "items.1"),
        ("Hello", "items.1"),
    ],
)
def test_items__one_is_wrong__none_is_added_and_its_field_is_named(
    api: APIClient, project: Project, item: Any, field: str
) -> None:
    dataset = make_dataset(project)

    answer = api.post(path_of(dataset, "items"), {"items": [item_body(), item]}, format="json")

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_dataset_item"), answer.content
    message = answer.json()["error"]["message"]
    assert message.startswith("items.1") and field in message, message
    assert api.get(path_of(dataset)).json()["version"] == 1


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"tags": ["x" * 51]}, "tags.0"),
        ({"tags": [str(number) for number in range(21)]}, "tags"),
    ],
)
def test_item_change__that_no_item_may_have__has_the_code_of_items(
    api: APIClient, project: Project, change: dict[str, Any], field: str
) -> None:
    dataset = make_dataset(project)
    item = first_item(api, dataset)

    answer = api.patch(path_of(dataset, "items", item["id"]), change, format="json")

    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (400, "invalid_dataset_item"), answer.content
    assert error["message"].startswith(f"{field}: ")


@pytest.mark.parametrize(("count", "status"), [(0, 400), (1_000, 201), (1_001, 400)])
def test_items__as_many_as_one_call_takes__more_is_400(
    api: APIClient, project: Project, count: int, status: int
) -> None:
    dataset = make_dataset(project, items=0)

    answer = api.post(path_of(dataset, "items"), {"items": [item_body("Hi")] * count}, format="json")

    assert answer.status_code == status
    assert dataset.items.count() == (count if status == 201 else 0)


def test_items__more_than_a_set_holds__409_and_none_is_added(
    api: APIClient, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "MAX_ITEMS", 4)
    dataset = make_dataset(project, items=3)

    answer = api.post(path_of(dataset, "items"), {"items": [item_body(), item_body()]}, format="json")

    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "dataset_full")
    assert dataset.items.count() == 3


def test_item__of_another_version_or_set__404(api: APIClient, project: Project) -> None:
    dataset, other = make_dataset(project), make_dataset(project)
    item = first_item(api, dataset)
    assert api.delete(path_of(dataset, "items", item["id"])).status_code == 204

    answers = [
        api.get(path_of(dataset, "items", item["id"])),
        api.patch(path_of(dataset, "items", item["id"]), {"tags": ["x"]}, format="json"),
        api.delete(path_of(dataset, "items", item["id"])),
        api.get(path_of(other, "items", item["id"])),
        api.delete(f"{path_of(other, 'items', item['id'])}?erase=true"),
    ]

    assert {(one.status_code, one.json()["error"]["code"]) for one in answers} == {(404, "dataset_item_not_found")}


@pytest.mark.parametrize("value", ["a\u0000b", {"x\u0000": 1}])
def test_item__expected_that_no_database_takes__400(api: APIClient, project: Project, value: Any) -> None:
    dataset = make_dataset(project)
    item = first_item(api, dataset)

    answer = api.patch(path_of(dataset, "items", item["id"]), {"expected": value}, format="json")

    assert answer.status_code == 400, answer.content


def test_item__erased__is_in_no_version(api: APIClient, project: Project) -> None:
    dataset = make_dataset(project, items=2)
    item = first_item(api, dataset)
    api.patch(path_of(dataset, "items", item["id"]), {"tags": ["x"]}, format="json")

    assert api.delete(f"{path_of(dataset, 'items', item['id'])}?erase=true").status_code == 204

    assert [texts_of(api, dataset, version=version) for version in (1, 2)] == [["Question 2"]] * 2
    body = api.get(path_of(dataset)).json()
    assert (body["version"], body["item_count"], body["erased_items"]) == (2, 1, 1)


def test_item__expected_taken_back__is_null(api: APIClient, project: Project) -> None:
    dataset = make_dataset(project)
    item = first_item(api, dataset)

    answer = api.patch(path_of(dataset, "items", item["id"]), {"expected": None}, format="json")

    assert answer.json()["expected"] is None
    assert DatasetItem.objects.get(item_id=item["id"], removed_in=None).expected is None


def test_dataset__reader_without_content__sees_no_texts_and_changes_nothing(project: Project) -> None:
    dataset = make_dataset(project)
    viewer, reader = person_of(project, Role.READER_WITHOUT_CONTENT), person_of(project, Role.READER)

    shown = viewer.get(path_of(dataset, "items")).json()["results"][0]

    assert shown["position"] == 1
    names = ("messages", "variables", "parameters", "expected", "preview")
    assert {name: shown[name] for name in names} == dict.fromkeys(names)
    assert viewer.get(path_of(dataset, "export")).status_code == 403
    for client in (viewer, reader):
        assert client.post(path_of(dataset, "items"), {"items": [item_body()]}, format="json").status_code == 403
        assert client.delete(path_of(dataset)).status_code == 403
