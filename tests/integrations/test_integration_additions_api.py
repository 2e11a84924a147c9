"""Tests parameters and headers of an integration over the management API: checked, masked, kept and entered again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from rest_framework.test import APIClient

from core.encryption.rotation import rotate_all
from core.errors import ValidationError
from core.models import Project
from integrations.access.checked_additions import checked_parameters
from integrations.models import ProviderIntegration
from integrations.selectors import enabled_credentials
from tests.factories.core import make_key

pytestmark = pytest.mark.django_db

KEY = "sk-secret-0123456789"
HEADER = "canary-header-value"
PATH = "/api/llm/integrations"
ADDITIONS: dict[str, Any] = {
    "default_parameters": {"temperature": 0.2, "top_k": 5},
    "forced_parameters": {"max_tokens": 100, "logit_bias": None},
    "extra_headers": {"X-Team": HEADER, "x-other": "plain"},
    "forward_headers": ["X-Request-Source", "openai-beta"],
}


@pytest.fixture
def client(project: Project) -> APIClient:
    _, key = make_key(project)
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {key}", HTTP_X_PROJECT_ID=str(project.pk))
    return client


def added(client: APIClient, **fields: Any) -> Any:
    response = client.post(PATH, {"provider": "openai", "api_key": KEY, **fields}, format="json")
    assert response.status_code == 201, response.content
    return response.json()


def test_own_account__said_and_taken_back__reaches_the_gateway(client: APIClient, project: Project) -> None:
    assert added(client)["own_account"] is False
    for own in (True, False):
        assert client.put(f"{PATH}/openai", {"own_account": own}, format="json").json()["own_account"] is own
        (credentials,) = enabled_credentials(project.pk)
        assert credentials.own_account is own


def test_post__additions__stored_for_the_gateway_and_headers_shown_masked(client: APIClient, project: Project) -> None:
    shown = added(client, **ADDITIONS)
    assert shown["default_parameters"] == ADDITIONS["default_parameters"]
    assert shown["forced_parameters"] == ADDITIONS["forced_parameters"]
    assert shown["extra_headers"] == {"x-team": "****", "x-other": "****"}
    assert shown["forward_headers"] == ["x-request-source", "openai-beta"]
    assert HEADER not in client.get(PATH).content.decode()
    (credentials,) = enabled_credentials(project.pk)
    assert credentials.default_parameters == ADDITIONS["default_parameters"]
    assert credentials.forced_parameters == ADDITIONS["forced_parameters"]
    assert credentials.extra_headers == {"x-team": HEADER, "x-other": "plain"}
    assert credentials.forward_headers == ("x-request-source", "openai-beta")
    row = ProviderIntegration.objects.for_project(project.pk).get()
    assert HEADER not in repr(vars(row))
    assert HEADER not in repr(credentials)


def test_post__no_additions__nothing_but_the_providers_own_list(client: APIClient) -> None:
    shown = added(client)
    assert {name: shown[name] for name in ADDITIONS} == {
        "default_parameters": {},
        "forced_parameters": {},
        "extra_headers": {},
        "forward_headers": ["openai-beta"],
    }


def test_put__what_was_shown_written_back__all_stays(client: APIClient, project: Project) -> None:
    shown = added(client, **ADDITIONS)
    answer = client.put(f"{PATH}/openai", {**shown, "enabled": False}, format="json")
    assert answer.status_code == 200, answer.content
    client.put(f"{PATH}/openai", {"enabled": True}, format="json")
    (credentials,) = enabled_credentials(project.pk)
    assert credentials.extra_headers == {"x-team": HEADER, "x-other": "plain"}
    assert credentials.default_parameters == ADDITIONS["default_parameters"]


def test_put__headers__take_the_place_of_the_stored_but_for_masked_ones(client: APIClient, project: Project) -> None:
    added(client, **ADDITIONS)
    client.put(f"{PATH}/openai", {"extra_headers": {"x-team": "****", "x-new": "1"}}, format="json")
    assert enabled_credentials(project.pk)[0].extra_headers == {"x-team": HEADER, "x-new": "1"}
    client.put(f"{PATH}/openai", {"extra_headers": {}, "default_parameters": {}, "forward_headers": []}, format="json")
    (credentials,) = enabled_credentials(project.pk)
    assert (credentials.extra_headers, credentials.default_parameters, credentials.forward_headers) == ({}, {}, ())


def test_put__forward_headers_null_or_the_list_shown__the_providers_own(client: APIClient, project: Project) -> None:
    added(client, forward_headers=["x-a"])
    for headers in (None, ["openai-beta"]):
        client.put(f"{PATH}/openai", {"forward_headers": ["x-a"]}, format="json")
        shown = client.put(f"{PATH}/openai", {"forward_headers": headers}, format="json").json()
        assert shown["forward_headers"] == ["openai-beta"]
        assert ProviderIntegration.objects.for_project(project.pk).get().forward_headers is None


DEEP: Any = json.loads("[" * 200 + "]" * 200)


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("default_parameters", [], ""),
        ("default_parameters", {"messages": []}, "messages"),
        ("default_parameters", {"model": "gpt-5"}, "model"),
        ("default_parameters", {"tools": []}, "tools"),
        ("default_parameters", {"provider": {}}, "provider"),
        ("default_parameters", {"temperature": None}, "temperature"),
        ("default_parameters", {"temperature": 3}, "temperature"),
        ("default_parameters", {"temperature": "hot"}, "temperature"),
        ("default_parameters", {"max_tokens": 0}, "max_tokens"),
        ("default_parameters", {"a b": 1}, "name"),
        ("default_parameters", {"": 1}, "name"),
        ("default_parameters", {"x": "y" * 20_000}, "16384"),
        ("default_parameters", {f"p{index}": 1 for index in range(51)}, "50"),
        ("forced_parameters", {"stream": True}, "stream"),
        ("forced_parameters", {"reasoning_effort": 7}, "reasoning_effort"),
        ("extra_headers", {"Authorization": "Bearer x"}, "authorization"),
        ("extra_headers", {"x-api-key": "x"}, "x-api-key"),
        ("extra_headers", {"host": "evil.test"}, "host"),
        ("extra_headers", {"Content-Length": "0"}, "content-length"),
        ("extra_headers", {"transfer-encoding": "chunked"}, "transfer-encoding"),
        ("extra_headers", {"X-Amz-Date": "x"}, "x-amz-date"),
        ("extra_headers", {"x a": "x"}, "name"),
        ("extra_headers", {"x-a": f"{HEADER}\r\nx-b: 1"}, "x-a"),
        ("extra_headers", {"x-a": HEADER + "ü"}, "x-a"),
        ("extra_headers", {"x-a": ""}, "x-a"),
        ("extra_headers", {"x-a": "v" * 2049}, "x-a"),
        ("extra_headers", {"x-a": "1", "X-A": "2"}, "x-a"),
        ("extra_headers", {"x-a": "****"}, "x-a"),
        ("extra_headers", {f"x-{index}": "1" for index in range(21)}, "20"),
        ("forward_headers", "x-a", ""),
        ("forward_headers", ["cookie"], "cookie"),
        ("forward_headers", ["Authorization"], "authorization"),
        ("forward_headers", ["x-svc-user-id"], "x-svc-user-id"),
        ("forward_headers", ["x-project-id"], "x-project-id"),
        ("forward_headers", [""], ""),
        ("forward_headers", [f"x-{index}" for index in range(21)], "20"),
    ],
)
def test_post__wrong_addition__400_that_names_field_and_entry_and_no_value(
    client: APIClient, field: str, value: Any, named: str
) -> None:
    response = client.post(PATH, {"provider": "openai", "api_key": KEY, field: value}, format="json")
    assert response.status_code == 400, response.content
    error = response.json()["error"]
    (place,) = error["details"]
    assert place.partition(".")[0] == field
    assert named in json.dumps(error)
    assert HEADER not in response.content.decode()
    assert client.get(PATH).json()["count"] == 0


def test_post__parameter_nested_deeply__stored_or_refused_never_a_crash(client: APIClient) -> None:
    sent = {"provider": "openai", "api_key": KEY, "default_parameters": {"x": DEEP}}
    assert client.post(PATH, sent, format="json").status_code in (201, 400)


@pytest.mark.parametrize("value", ["a\x00b", ["\x00"], {"\x00": 1}, "\ud800", [float("nan")], float("inf"), {1, 2}])
def test_parameter__that_cannot_be_stored_or_sent__is_refused(value: Any) -> None:
    with pytest.raises(ValidationError, match=r"^forced_parameters: "):
        checked_parameters("forced_parameters", {"x": value}, may_remove=True)


def test_put__another_host__headers_have_to_be_given_anew(client: APIClient, project: Project) -> None:
    added(client, extra_headers={"x-team": HEADER})
    moved = {"base_url": "https://api.example.com/v1", "api_key": "sk-new-9876543210"}
    refused = client.put(f"{PATH}/openai", moved, format="json")
    assert refused.status_code == 400
    assert {"base_url", "extra_headers"} <= refused.json()["error"]["details"].keys()
    masked = client.put(f"{PATH}/openai", {**moved, "extra_headers": {"x-team": "****"}}, format="json")
    assert masked.status_code == 400
    for headers in ({"x-team": "anew-1234"}, {}):
        client.put(f"{PATH}/openai", {**moved, "extra_headers": headers}, format="json")
        assert enabled_credentials(project.pk)[0].base_url == "https://api.example.com/v1"
        assert enabled_credentials(project.pk)[0].extra_headers == headers


def test_try__another_address__stored_headers_are_not_sent_there(client: APIClient) -> None:
    added(client, extra_headers={"x-team": HEADER})
    moved = {"base_url": "https://api.example.com/v1", "api_key": "sk-new-9876543210"}
    response = client.post(f"{PATH}/openai/test", moved, format="json")
    assert response.status_code == 400
    assert "extra_headers" in response.json()["error"]["details"]


def test_rotation__stored_headers__are_rotated(client: APIClient) -> None:
    added(client, extra_headers={"x-team": HEADER})
    (found,) = [rotation for rotation in rotate_all(dry_run=True) if rotation.model.endswith("ProviderIntegration")]
    assert found.current + found.rotated == 2
