"""A change of an integration through the management API, as every worker sees it; and a database that is away."""

from __future__ import annotations

from functools import partial

import pytest

from tests.fakes import scripted as play
from tests.fakes.scripted import ScriptedServer
from tests.gateway.service import Gateway, GatewayService
from tests.gateway.wire import assert_error, body


@pytest.fixture
def empty_project(service: GatewayService) -> Gateway:
    """A project without integrations, which both workers have read already."""
    project = service.new_project()
    for port in service.ports:
        assert_error(project.post(body(), port=port), 404, "model_not_found")
    return project


def status_of(gateway: Gateway, key: str, port: int) -> int:
    return gateway.post(body(), key=key, port=port).status_code


def text_of(gateway: Gateway, port: int, expected: str) -> str:
    def ask() -> str:
        response = gateway.post(body(), port=port)
        if response.status_code != 200:
            return str(response.status_code)
        text: str = response.json()["choices"][0]["message"]["content"]
        return text

    return gateway.service.until(ask, lambda text: text == expected)


def test_integration__made_changed_disabled_deleted__is_seen_by_every_worker(
    service: GatewayService, empty_project: Gateway, upstream: ScriptedServer
) -> None:
    upstream.play("old", play.answer("old"))
    upstream.play("new", play.answer("new"))
    given = {"provider": "openai", "api_key": "sk-of-this-test-000000000000", "base_url": upstream.base_url("old")}

    assert empty_project.manage("POST", "integrations", given).status_code == 201
    for port in service.ports:
        assert text_of(empty_project, port, "old") == "old"

    changed = empty_project.manage("PUT", "integrations/openai", {"base_url": upstream.base_url("new")})
    assert changed.status_code == 200, changed.text
    for port in service.ports:
        assert text_of(empty_project, port, "new") == "new"

    assert empty_project.manage("PUT", "integrations/openai", {"enabled": False}).status_code == 200
    for port in service.ports:
        assert text_of(empty_project, port, "404") == "404"

    assert empty_project.manage("PUT", "integrations/openai", {"enabled": True}).status_code == 200
    for port in service.ports:
        assert text_of(empty_project, port, "new") == "new"

    assert empty_project.manage("DELETE", "integrations/openai").status_code == 204
    for port in service.ports:
        assert text_of(empty_project, port, "404") == "404"


def test_provider_key__rotated__is_what_the_provider_gets(
    service: GatewayService, empty_project: Gateway, upstream: ScriptedServer
) -> None:
    script = upstream.play("rotated", play.answer("hi"))
    given = {"provider": "openai", "api_key": "sk-first-00000000000000", "base_url": upstream.base_url("rotated")}
    assert empty_project.manage("POST", "integrations", given).status_code == 201
    assert text_of(empty_project, service.ports[0], "hi") == "hi"

    rotated = empty_project.manage("PUT", "integrations/openai", {"api_key": "sk-second-0000000000000"})

    assert rotated.status_code == 200
    assert "sk-second" not in rotated.text

    def key_sent() -> str:
        empty_project.post(body())
        return script.received[-1].headers["authorization"]

    assert service.until(key_sent, lambda key: "second" in key) == "Bearer sk-second-0000000000000"


def test_new_key__of_the_management_api__works_on_every_worker(
    service: GatewayService, empty_project: Gateway, upstream: ScriptedServer
) -> None:
    made = empty_project.manage("POST", "keys", {"name": "second", "scopes": ["gateway"]})

    assert made.status_code == 201, made.text
    key = made.json()["key"]
    for port in service.ports:
        answer = service.until(partial(status_of, empty_project, key, port), lambda status: status == 404)
        assert answer == 404


def test_routing_settings__changed__are_obeyed_by_every_worker(
    service: GatewayService, upstream: ScriptedServer
) -> None:
    upstream.play("down", play.status(404))
    upstream.play("up", play.answer("up"))
    project = service.new_project(base_urls={"openai": upstream.base_url("down"), "groq": upstream.base_url("up")})
    for port in service.ports:
        assert text_of(project, port, "404") == "404"

    service.set_routing(project.project_id, fallback_order=["groq"])
    for port in service.ports:
        assert text_of(project, port, "up") == "up"

    service.set_routing(project.project_id, fallback_enabled=False)
    for port in service.ports:
        assert text_of(project, port, "404") == "404"
