"""Projects and keys with settings of their own: those that give a stage something to do have no plans."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any

import pytest

from tests.fakes.scripted import ScriptedServer, answer, status
from tests.gateway.plans.both import PlansService, Seen, same
from tests.gateway.service import Gateway
from tests.gateway.wire import bearer, body

SCRIPT = "projects"
CONTENT = json.dumps(body()).encode()

# These headers count requests, and seconds until they may come again.
_COUNTED = frozenset({"x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"})

NewProject = Callable[..., Gateway]


@pytest.fixture(scope="module")
def upstream_of_projects() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        server.play(SCRIPT, answer())
        yield server


@pytest.fixture
def new_project(plans: PlansService, upstream_of_projects: ScriptedServer) -> NewProject:
    """Makes a project whose workers have a connection that a plan can use."""

    def made(expected: int = 200, **options: Any) -> Gateway:
        base_url = upstream_of_projects.base_url(SCRIPT)
        integration = {"provider": "openai", "base_url": base_url, "api_key": "sk", **options.pop("integration", {})}
        gateway = plans.new_project(integrations=[integration, *options.pop("integrations", ())], **options)
        gateway.upstream = upstream_of_projects
        for port in plans.ports:
            assert gateway.post(CONTENT, port=port).status_code == expected
        return gateway

    return made


ALONE: dict[str, dict[str, Any]] = {
    "as_it_is_made": {},
    "without_content": {"routing": {"log_content": False}},
    "short_retention": {"routing": {"retention_days": 3}},
    "retries": {"routing": {"retry_enabled": False}},
    "preferred_models": {"routing": {"preferred_models": ["openai/gpt-4o"]}},
    "own_headers": {"integration": {"extra_headers": {"x-team": "a"}}},
    "own_price": {"prices": [{"provider": "openai", "model": "gpt-4o", "input": "0.0000037", "output": "1.23456789"}]},
}
WITH_WORK: dict[str, dict[str, Any]] = {
    "guardrails": {"routing": {"guardrails": {"trust_mode": "monitor", "blocked_input_topics": ["moon"]}}},
    "reasoning": {"routing": {"introspection_enabled": True}},
    "responses_for_tools": {"routing": {"openai_responses_for_tools": True}},
    "fallback_order": {"routing": {"fallback_order": ["openai"]}},
    "parameters": {"integration": {"default_parameters": {"temperature": 0.3}}},
}


@pytest.mark.parametrize("options", ALONE.values(), ids=ALONE)
def test_project__that_forwards_alone__has_plans(new_project: NewProject, options: dict[str, Any]) -> None:
    gateway = new_project(**options)

    # A plan declines where the worker's only connection is not given back yet.
    seen, planned = gateway.service.until(lambda: same(gateway, gateway.upstream, CONTENT), itemgetter(1))

    assert seen.status == 200
    assert planned


@pytest.mark.parametrize("options", WITH_WORK.values(), ids=WITH_WORK)
def test_project__with_work_for_a_stage__has_none(new_project: NewProject, options: dict[str, Any]) -> None:
    gateway = new_project(**options)

    seen, planned = same(gateway, gateway.upstream, CONTENT)

    assert seen.status == 200
    assert not planned


def test_project__with_a_cache__has_none(new_project: NewProject) -> None:
    gateway = new_project(routing={"cache_ttl_seconds": 60})

    answers = [gateway.post(CONTENT, port=gateway.port) for _ in range(2)]

    assert [answer.headers["x-svc-cache"] for answer in answers] == ["hit", "hit"]


def test_settings__that_change__change_the_plans(new_project: NewProject) -> None:
    gateway = new_project()
    assert gateway.service.until(lambda: same(gateway, gateway.upstream, CONTENT)[1], bool)

    gateway.service.set_routing(gateway.project_id, introspection_enabled=True)
    gateway.service.until(lambda: same(gateway, gateway.upstream, CONTENT)[1], lambda planned: not planned)
    assert not any(same(gateway, gateway.upstream, CONTENT)[1] for _ in range(5))

    gateway.service.set_routing(gateway.project_id, introspection_enabled=False)
    assert gateway.service.until(lambda: same(gateway, gateway.upstream, CONTENT)[1], bool)


def key_of(gateway: Gateway, **fields: Any) -> str:
    made = gateway.manage("POST", "keys", {"name": "plans", "scopes": ["gateway"], **fields})
    assert made.status_code == 201, made.text
    key: str = made.json()["key"]
    return key


KEYS: dict[str, tuple[dict[str, Any], int, bool]] = {
    "plain": ({}, 200, True),
    "expires_later": ({"expires_at": "2099-01-01T00:00:00Z"}, 200, True),
    "permitted": ({"allowed_models": ["gpt-4o"]}, 200, True),
    "not_permitted": ({"allowed_models": ["gpt-4o-mini"]}, 403, False),
    "metadata": ({"metadata": {"team": "a"}}, 200, True),
    # Nothing is leased for so few requests (`test_limits.py`).
    "limited": ({"rate_limit_rpm": 1000}, 200, False),
}


@pytest.mark.parametrize(("fields", "status", "planned"), KEYS.values(), ids=KEYS)
def test_key__of_its_own__is_the_same(
    new_project: NewProject, fields: dict[str, Any], status: int, *, planned: bool
) -> None:
    gateway = new_project()
    headers = bearer(key_of(gateway, **fields))
    for port in gateway.service.ports:
        # A key that a worker does not know yet is looked up by the stages.
        assert gateway.post(CONTENT, headers=headers, port=port).status_code == status

    def both() -> tuple[Seen, bool]:
        return same(gateway, gateway.upstream, CONTENT, headers=headers, but=_COUNTED)

    found = gateway.service.until(both, lambda found: found[1] or not planned)

    assert (found[0].status, found[1]) == (status, planned)


def test_key__that_is_revoked__is_refused(new_project: NewProject) -> None:
    gateway = new_project()
    key = key_of(gateway)
    assert gateway.post(CONTENT, key=key).status_code == 200

    gateway.service.revoke_key(key)

    status = gateway.service.until(lambda: gateway.post(CONTENT, key=key).status_code, lambda status: status != 200)
    assert status == 401


def test_key__that_expires__is_refused(new_project: NewProject) -> None:
    gateway = new_project()
    key = gateway.service.make_key(gateway.project_id, expires_in=3)
    seen = [gateway.post(CONTENT, key=key).status_code]
    while seen[-1] != 401:
        seen.append(gateway.post(CONTENT, key=key).status_code)

    assert seen[0] == 200


@pytest.mark.parametrize("case", ["own", "upper", "other"])
def test_project_id__of_the_header__is_compared(new_project: NewProject, case: str) -> None:
    gateway = new_project()
    named = {"own": gateway.project_id, "upper": gateway.project_id.upper(), "other": "nobody"}[case]
    service = gateway.service
    assert isinstance(service, PlansService)
    before = service.planned[0]

    def asked() -> tuple[int, bool]:
        return gateway.post(CONTENT, headers={"x-project-id": named}).status_code, service.planned[0] > before

    found = service.until(asked, lambda found: found[1] or case == "other")

    assert found == ((401, False) if case == "other" else (200, True))


def test_plans__are_counted_by_what_became_of_them(new_project: NewProject) -> None:
    gateway = new_project()
    service, port = gateway.service, gateway.port
    assert isinstance(service, PlansService)
    script = gateway.upstream.play("counted", status(400))
    failing = new_project(integration={"base_url": gateway.upstream.base_url("counted")}, expected=400)

    def grown(request: Callable[[], Any]) -> tuple[int, int, int]:
        before = service.counts(port)
        request()
        answered, declined, handed_over = (now - then for now, then in zip(service.counts(port), before, strict=True))
        return answered, declined, handed_over

    assert script.received
    assert service.until(lambda: grown(lambda: gateway.post(CONTENT, port=port)), lambda one: bool(one[0])) == (1, 0, 0)
    assert grown(lambda: gateway.post(json.dumps(body(stream=True)).encode(), port=port)) == (0, 1, 0)
    assert service.until(lambda: grown(lambda: failing.post(CONTENT, port=port)), lambda one: bool(one[2])) == (0, 0, 1)
