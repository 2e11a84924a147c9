from __future__ import annotations

from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries
from rest_framework.test import APIClient

from core.models import Project
from prompts.models import PromptConfig
from prompts.services import set_rollout_active
from tests.factories.core import make_project
from tests.factories.prompts import make_config
from tests.prompts.paths import BASE, config_path
from tests.tables.cases import tabled

PATH = f"{BASE}/configs"


def test_post__new__201_with_version_metadata(api: APIClient, project: Project) -> None:
    response = api.post(PATH, {"project_id": str(project.pk), "name": "greeter", "description": "says hello"})
    assert response.status_code == 201
    body = response.json()
    assert list(body) == [
        "id",
        "project_id",
        "name",
        "description",
        "active_version_id",
        "active_version_number",
        "version_count",
        "has_active_rollout",
        "created_at",
        "updated_at",
    ]
    assert (body["project_id"], body["name"], body["description"]) == (str(project.pk), "greeter", "says hello")
    assert (body["active_version_id"], body["active_version_number"], body["version_count"]) == (None, None, 0)
    assert body["has_active_rollout"] is False
    assert body["created_at"].endswith("Z")


def test_post__name_taken__409(api: APIClient, project: Project) -> None:
    make_config(make_project(), "greeter")
    assert api.post(PATH, {"name": "greeter"}).status_code == 201
    response = api.post(PATH, {"name": " greeter "})
    assert (response.status_code, response.json()["error"]["code"]) == (409, "prompt_config_exists")
    assert PromptConfig.objects.for_project(project.pk).count() == 1


@tabled
def test_post__bad_body__400_naming_the_field(api: APIClient, body: Any, field: str, code: str) -> None:
    response = api.post(PATH, body)
    error = response.json()["error"]
    assert (response.status_code, error["type"], error["code"]) == (400, "invalid_request_error", code)
    assert list(error["details"]) == [field]
    assert not PromptConfig.objects.exists()


def test_get_list__own_project_only__by_name_with_metadata(api: APIClient, project: Project) -> None:
    make_config(make_project(), "foreign", versions=1)
    make_config(project, "b", versions=3)
    rolling = make_config(project, "a", versions=1)
    set_rollout_active(config_id=rolling.pk, active=True)
    body = api.get(PATH, {"project_id": str(project.pk)}).json()
    assert (body["count"], body["next"], body["previous"]) == (2, None, None)
    shown = [
        (row["name"], row["active_version_number"], row["version_count"], row["has_active_rollout"])
        for row in body["results"]
    ]
    assert shown == [("a", 1, 1, True), ("b", 1, 3, False)]


def test_get_list__many_configs__as_few_queries_as_one(
    api: APIClient, project: Project, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(5):
        make_config(project, versions=2)
    api.get(PATH)
    # The queries read the key, the page and its count.
    with django_assert_num_queries(3):
        assert len(api.get(PATH).json()["results"]) == 5


@tabled
def test_get_list__filters(api: APIClient, project: Project, query: dict[str, str], names: list[str]) -> None:
    make_config(project, "greeter")
    for name, description in (("farewell", "the greeter's opposite"), ("sales", "50% off")):
        PromptConfig.objects.create(project=project, name=name, description=description)
    PromptConfig.objects.filter(name="sales").update(has_active_rollout=True)
    assert [row["name"] for row in api.get(PATH, query).json()["results"]] == names


def test_get__one__version_metadata_as_in_the_list(api: APIClient, project: Project) -> None:
    config = make_config(project, versions=2)
    body = api.get(config_path(config.pk)).json()
    assert (body["active_version_number"], body["version_count"]) == (1, 2)
    assert body["active_version_id"] == str(config.active_version_id)
    assert api.get(PATH).json()["results"] == [body]


def test_put__name_or_description__the_other_stays(api: APIClient, project: Project) -> None:
    config = make_config(project, "old")
    assert api.put(config_path(config.pk), {"name": "new"}).json()["name"] == "new"
    response = api.put(config_path(config.pk), {"description": "what for"})
    assert (response.status_code, response.json()["name"], response.json()["description"]) == (200, "new", "what for")
    assert api.put(config_path(config.pk), {"description": ""}).json()["description"] == ""


def test_put__bad_or_taken_name__400_and_409(api: APIClient, project: Project) -> None:
    config = make_config(project, "old")
    make_config(project, "taken")
    for body in ({"name": ""}, {"name": "a\tb"}, {"name": None}, {"description": 5.5, "name": []}):
        response = api.put(config_path(config.pk), body)
        assert (response.status_code, "name" in response.json()["error"]["details"]) == (400, True)
    assert api.put(config_path(config.pk), {"name": "taken"}).status_code == 409
    config.refresh_from_db()
    assert config.name == "old"


def test_delete__config__204_with_its_versions_then_404(api: APIClient, project: Project) -> None:
    config = make_config(project, versions=2)
    assert api.delete(config_path(config.pk)).status_code == 204
    response = api.delete(config_path(config.pk))
    assert (response.status_code, response.json()["error"]["code"]) == (404, "prompt_config_not_found")
    assert api.post(PATH, {"name": config.name}).status_code == 201


def test_delete__active_rollout__409_and_everything_stays(api: APIClient, project: Project) -> None:
    config = make_config(project, versions=1)
    set_rollout_active(config_id=config.pk, active=True)
    response = api.delete(config_path(config.pk))
    error = response.json()["error"]
    assert (response.status_code, error["type"], error["code"]) == (409, "conflict_error", "rollout_active")
    assert api.get(config_path(config.pk)).json()["version_count"] == 1


@pytest.mark.parametrize("config_id", ["0", "abc", "not-a-uuid"])
def test_every_path__malformed_id__404_in_the_envelope(api: APIClient, config_id: str) -> None:
    response = api.get(config_path(config_id))
    assert (response.status_code, response.json()["error"]["type"]) == (404, "not_found_error")


def test_every_path__options__answered(api: APIClient, project: Project) -> None:
    config = make_config(project, versions=1)
    path = config_path(config.pk)
    version = f"{path}/versions/{config.active_version_id}"
    for url in (PATH, path, f"{path}/versions", version, f"{version}/activate", f"{path}/activations"):
        response = api.options(url)
        assert (response.status_code, "actions" in response.json()) == (200, False)
